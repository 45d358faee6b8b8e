#define __CUDA_NO_HALF_OPERATORS__
#include <cuda_fp16.h>

template <typename To, typename From>
static __device__ To bits_as(From a) {
  static_assert(sizeof(To) == sizeof(From));
  To b;
  memcpy(&b, &a, sizeof b);
  return b;
}

template <typename T>
static __device__ unsigned packed(T a, T b) {
  return bits_as<unsigned short>(a) | (unsigned)bits_as<unsigned short>(b) << 16;
}

static __device__ unsigned packed(unsigned char a, unsigned char b, unsigned char c, unsigned char d) {
  return packed((unsigned short)(a | b << 8), (unsigned short)(c | d << 8));
}

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

template <int bytes> struct word_of;
template <> struct word_of<2> { using type = unsigned short; };
template <> struct word_of<4> { using type = unsigned; };
template <> struct word_of<8> { using type = uint2; };
template <> struct word_of<16> { using type = uint4; };

template <int bytes, typename T, int N>
static __device__ void store_wide(T* place, vec<T, N> a) {
  for (int i = 0; i < N * int(sizeof(T)) / bytes; ++i) {
    typename word_of<bytes>::type part;
    memcpy(&part, (char*)a.lanes + i * bytes, bytes);
    ((typename word_of<bytes>::type*)place)[i] = part;
  }
}

static __device__ vec<float, 4> mma_m16n8k16_row_col_f32_f32(
    unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1,
    float c0, float c1, float c2, float c3) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  return bits_as<vec<float, 4>>(vec<float, 4>::of(c0, c1, c2, c3));
}

extern "C" __global__ void __launch_bounds__(32)
whole3_kernel0(
    float* __restrict__ D,
    const __half* __restrict__ A,
    const __half* __restrict__ B,
    const float* __restrict__ C) {
  const long long t = threadIdx.x;
  const long long t_1 = (long long)(t * 4ull);
  const long long t_2 = (long long)(t * 8ull);
  const long long t_3 = (long long)(t_1 + 1ull);
  const long long t_4 = (long long)(t_1 + 2ull);
  const long long t_5 = (long long)(t_1 + 3ull);
  store_wide<16>(&D[t_1], mma_m16n8k16_row_col_f32_f32(packed(A[t_2], A[t_2 + 1ull]), packed(A[t_2 + 2ull], A[t_2 + 3ull]), packed(A[t_2 + 4ull], A[t_2 + 5ull]), packed(A[t_2 + 6ull], A[t_2 + 7ull]), packed(B[t_1], B[t_3]), packed(B[t_4], B[t_5]), C[t_1], C[t_3], C[t_4], C[t_5]));
}

