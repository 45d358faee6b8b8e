#define __CUDA_NO_HALF_OPERATORS__
#include <cuda_fp16.h>

template <typename T>
static __device__ auto widened(T a) {
  if constexpr (sizeof(T) < sizeof(int) && T(-1) > T(0)) return unsigned(a);
  else return a;
}


template <typename T, int N>
struct vec {
  using lane = T;
  T lanes[N];

  template <typename... Rest>
  static __device__ vec of(T a, T b, Rest... rest) { return {{a, b, T(rest)...}}; }

  static __device__ vec of(T a) {
    vec all;
    for (int i = 0; i < N; ++i) all.lanes[i] = a;
    return all;
  }

  __device__ T operator[](int i) const { return lanes[i]; }
};

template <int bytes> struct mask_lane;  // 0 or -1, as wide as the lanes that were compared
template <> struct mask_lane<1> { using type = signed char; };
template <> struct mask_lane<2> { using type = short; };
template <> struct mask_lane<4> { using type = int; };
template <> struct mask_lane<8> { using type = long long; };

#define LANEWISE(op) \
  template <typename T, int N> \
  static __device__ vec<T, N> operator op(vec<T, N> a, vec<T, N> b) { \
    vec<T, N> c; \
    for (int i = 0; i < N; ++i) c.lanes[i] = T(widened(a.lanes[i]) op widened(b.lanes[i])); \
    return c; \
  }
#define COMPARISON(op) \
  template <typename T, int N> \
  static __device__ auto operator op(vec<T, N> a, vec<T, N> b) { \
    vec<typename mask_lane<sizeof(T)>::type, N> c; \
    for (int i = 0; i < N; ++i) c.lanes[i] = a.lanes[i] op b.lanes[i] ? -1 : 0; \
    return c; \
  }
LANEWISE(+) LANEWISE(-) LANEWISE(*) LANEWISE(/) LANEWISE(%)
LANEWISE(&) LANEWISE(|) LANEWISE(^) LANEWISE(<<) LANEWISE(>>)
COMPARISON(==) COMPARISON(!=) COMPARISON(<) COMPARISON(<=) COMPARISON(>) COMPARISON(>=)
#undef LANEWISE
#undef COMPARISON

template <typename T, int N>
static __device__ vec<T, N> operator~(vec<T, N> a) {
  for (int i = 0; i < N; ++i) a.lanes[i] = T(~a.lanes[i]);
  return a;
}

#define OPERATION(op, function) \
  static __device__ __half operator op(__half a, __half b) { return function(a, b); }
#define COMPARISON(op, function) \
  static __device__ bool operator op(__half a, __half b) { return function(a, b); }
OPERATION(+, __hadd_rn) OPERATION(-, __hsub_rn) OPERATION(*, __hmul_rn)
COMPARISON(==, __heq) COMPARISON(!=, __hneu)
COMPARISON(<, __hlt) COMPARISON(<=, __hle) COMPARISON(>, __hgt) COMPARISON(>=, __hge)
#undef OPERATION
#undef COMPARISON

static __device__ __half operator/(__half a, __half b) {
  return __float2half_rn(__half2float(a) / __half2float(b));
}

#define PAIRWISE(op, function) \
  template <int N> \
  static __device__ vec<__half, N> operator op(vec<__half, N> a, vec<__half, N> b) { \
    for (int i = 0; i < N; i += 2) { \
      const __half2 c = function( \
        __halves2half2(a.lanes[i], a.lanes[i + 1]), __halves2half2(b.lanes[i], b.lanes[i + 1])); \
      a.lanes[i] = __low2half(c); \
      a.lanes[i + 1] = __high2half(c); \
    } \
    return a; \
  }
PAIRWISE(+, __hadd2_rn) PAIRWISE(-, __hsub2_rn) PAIRWISE(*, __hmul2_rn)
#undef PAIRWISE

template <int N>
static __device__ vec<__half, N> operator/(vec<__half, N> a, vec<__half, N> b) {
  for (int i = 0; i < N; ++i) a.lanes[i] = a.lanes[i] / b.lanes[i];
  return a;
}

static __device__ __half fmod(__half a, __half b) {
  return __float2half_rn(fmodf(__half2float(a), __half2float(b)));
}

static __device__ __half fabs(__half a) { return __habs(a); }

static __device__ __half copysign(__half a, __half b) {
  return __ushort_as_half((__half_as_ushort(a) & 0x7fff) | (__half_as_ushort(b) & 0x8000));
}

template <int N, typename T>
static __device__ vec<T, N> load_lanes(const T* place) {
  vec<T, N> a;
  for (int i = 0; i < N; ++i) a.lanes[i] = place[i];
  return a;
}

template <typename T, int N>
static __device__ void store_lanes(T* place, vec<T, N> a) {
  for (int i = 0; i < N; ++i) place[i] = a.lanes[i];
}

static __device__ __half greatest_f16(__half a, __half b) {
  return b > a || b != b ? b : a;
}

extern "C" __global__ void __launch_bounds__(4)
halves(
    const __half* __restrict__ A,
    const __half* __restrict__ B,
    __half* __restrict__ C,
    float* __restrict__ D,
    const __half x,
    const unsigned char add_passed) {
  const bool add = add_passed != 0;
  const long long bx = blockIdx.x;
  const long long tx = threadIdx.x;
  const long long i = (long long)((bx * 4ull + tx) * 4ull);
  store_lanes(&C[i], load_lanes<4>(&A[i]) * load_lanes<4>(&B[i]) + vec<__half, 4>::of(x));
  for (long long j = 0ll; j < 4ll; ++j) {
    if (add) {
      D[(unsigned long long)i + j] = (float)greatest_f16(A[(unsigned long long)i + j] + B[(unsigned long long)i + j], x);
    } else {
      D[(unsigned long long)i + j] = (float)(A[(unsigned long long)i + j] / B[(unsigned long long)i + j] - __ushort_as_half(0x2e66));
    }
  }
}

