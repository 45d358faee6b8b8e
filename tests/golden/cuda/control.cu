static __device__ long long floordiv_i64(long long a, long long b) {
  if (b == 0) return 0;
  if (b == -1) return (long long)(0 - (unsigned long long)a);
  const long long q = a / b, r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? q - 1 : q;
}

static __device__ long long floormod_i64(long long a, long long b) {
  if (b == 0 || b == -1) return 0;
  const long long r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static __device__ long long shift_left_i64(long long a, long long b) {
  return (unsigned long long)b < 64 ? (long long)((unsigned long long)a << b) : 0;
}

extern "C" __global__ void __launch_bounds__(8)
control(
    const long long* __restrict__ A,
    long long* __restrict__ B,
    const signed char a,
    const unsigned short b,
    const unsigned long long c,
    const int low) {
  const long long z = blockIdx.z;
  const long long y = blockIdx.y;
  const long long x = blockIdx.x;
  const long long tz = threadIdx.z;
  const long long ty = threadIdx.y;
  const long long tx = threadIdx.x;
  const long long i = (long long)(((z * 2ull + y) * 2ull + x) * 8ull + (tz * 2ull + ty) * 2ull + tx);
  __align__(32) long long T[3];
  for (long long k = 0ll; k < 3ll; ++k) {
    T[k] = A[(long long)((unsigned long long)i + k) & 63ll];
  }
  const long long t = (long long)(1ll + 2ull);
  for (long long k = 1ll; k < t; ++k) {
    T[0ll] = (long long)((unsigned long long)floordiv_i64(T[0ll], T[k]) - floormod_i64(T[0ll], (long long)((unsigned long long)(long long)a - k)));
  }
  if ((T[0ll] > (long long)b && low < 3) || c == 9ull) {
    T[1ll] = shift_left_i64(T[1ll], i);
  }
  long long t_1;
  if (T[2ll] == 0ll) {
    t_1 = T[0ll];
  } else {
    const long long q = (long long)(T[1ll] * 3ull);
    t_1 = ((q >> 1ll) ^ (q & T[2ll])) | -7ll;
  }
  B[i] = t_1;
}

