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

static __device__ vec<int, 4> mma_m16n8k32_row_col_s8(
    unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1,
    int c0, int c1, int c2, int c3) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c0), "+r"(c1), "+r"(c2), "+r"(c3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  return bits_as<vec<int, 4>>(vec<int, 4>::of(c0, c1, c2, c3));
}

extern "C" __global__ void __launch_bounds__(32)
whole7_kernel0(
    int* __restrict__ D,
    const signed char* __restrict__ A,
    const signed char* __restrict__ B,
    const int* __restrict__ C) {
  const long long t = threadIdx.x;
  const long long t_1 = (long long)(t * 4ull);
  const long long t_2 = (long long)(t * 16ull);
  const long long t_3 = (long long)(t * 8ull);
  store_wide<16>(&D[t_1], mma_m16n8k32_row_col_s8(packed(A[t_2], A[t_2 + 1ull], A[t_2 + 2ull], A[t_2 + 3ull]), packed(A[t_2 + 4ull], A[t_2 + 5ull], A[t_2 + 6ull], A[t_2 + 7ull]), packed(A[t_2 + 8ull], A[t_2 + 9ull], A[t_2 + 10ull], A[t_2 + 11ull]), packed(A[t_2 + 12ull], A[t_2 + 13ull], A[t_2 + 14ull], A[t_2 + 15ull]), packed(B[t_3], B[t_3 + 1ull], B[t_3 + 2ull], B[t_3 + 3ull]), packed(B[t_3 + 4ull], B[t_3 + 5ull], B[t_3 + 6ull], B[t_3 + 7ull]), C[t_1], C[t_1 + 1ull], C[t_1 + 2ull], C[t_1 + 3ull]));
}

