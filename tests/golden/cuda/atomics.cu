template <typename To, typename From>
static __device__ To bits_as(From a) {
  static_assert(sizeof(To) == sizeof(From));
  To b;
  memcpy(&b, &a, sizeof b);
  return b;
}

#define UPDATE(name, function) \
  static __device__ void name(int* place, int a) { function(place, a); } \
  static __device__ void name(unsigned* place, unsigned a) { function(place, a); } \
  static __device__ void name(unsigned long long* place, unsigned long long a) { function(place, a); }
UPDATE(update_add, atomicAdd) UPDATE(update_min, atomicMin) UPDATE(update_max, atomicMax)
UPDATE(update_and, atomicAnd) UPDATE(update_or, atomicOr) UPDATE(update_xor, atomicXor)
#undef UPDATE
static __device__ void update_add(double* place, double a) { atomicAdd(place, a); }
#define UPDATE(name, function, type) \
  static __device__ void name(long long* place, long long a) { function((type*)place, (type)a); }
UPDATE(update_add, atomicAdd, unsigned long long)
UPDATE(update_min, atomicMin, long long) UPDATE(update_max, atomicMax, long long)
UPDATE(update_and, atomicAnd, unsigned long long) UPDATE(update_or, atomicOr, unsigned long long)
UPDATE(update_xor, atomicXor, unsigned long long)
#undef UPDATE

static __device__ unsigned compare_exchange(unsigned* place, unsigned expected, unsigned a) {
  return atomicCAS(place, expected, a);
}

static __device__ unsigned long long compare_exchange(
    unsigned long long* place, unsigned long long expected, unsigned long long a) {
  return atomicCAS(place, expected, a);
}

static __device__ void atomic_add_global_f32(float* place, float b) {
  unsigned* bits = (unsigned*)place;
  unsigned found = 0, expected;
  do {
    expected = found;
    const float a = bits_as<float>(expected);
    found = compare_exchange(bits, expected, bits_as<unsigned>(a + b));
  } while (found != expected);
}

static __device__ float least_f32(float a, float b) {
  return b < a || b != b ? b : a;
}

static __device__ void atomic_min_global_f32(float* place, float b) {
  unsigned* bits = (unsigned*)place;
  unsigned found = 0, expected;
  do {
    expected = found;
    const float a = bits_as<float>(expected);
    found = compare_exchange(bits, expected, bits_as<unsigned>(least_f32(a, b)));
  } while (found != expected);
}

static __device__ float greatest_f32(float a, float b) {
  return b > a || b != b ? b : a;
}

static __device__ void atomic_max_global_f32(float* place, float b) {
  unsigned* bits = (unsigned*)place;
  unsigned found = 0, expected;
  do {
    expected = found;
    const float a = bits_as<float>(expected);
    found = compare_exchange(bits, expected, bits_as<unsigned>(greatest_f32(a, b)));
  } while (found != expected);
}

extern "C" __global__ void __launch_bounds__(64)
atomics(
    const int* __restrict__ A,
    const float* __restrict__ F,
    const double* __restrict__ D,
    int* __restrict__ I,
    unsigned long long* __restrict__ L,
    float* __restrict__ R,
    double* __restrict__ S) {
  __shared__ __align__(16) int T[1];
  const long long g = blockIdx.x;
  const long long t = threadIdx.x;
  if (t == 0ll) {
    T[0ll] = 0;
  }
  __syncthreads();
  const long long i = (long long)(g * 64ull + t);
  update_add(&T[0ll], A[i]);
  __syncthreads();
  if (t == 0ll) {
    update_add(&I[0ll], T[0ll]);
  }
  update_max(&I[1ll], A[i]);
  update_xor(&I[2ll], A[i]);
  update_or(&I[3ll], A[i]);
  update_add(&L[0ll], (unsigned long long)A[i]);
  update_min(&L[1ll], (unsigned long long)A[i]);
  update_and(&L[2ll], (unsigned long long)A[i]);
  atomic_add_global_f32(&R[0ll], F[i]);
  atomic_min_global_f32(&R[1ll], F[i]);
  atomic_max_global_f32(&R[2ll], F[i]);
  update_add(&S[0ll], D[i]);
}

