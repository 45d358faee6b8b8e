template <typename To, typename From>
static __device__ To bits_as(From a) {
  static_assert(sizeof(To) == sizeof(From));
  To b;
  memcpy(&b, &a, sizeof b);
  return b;
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

template <typename T>
static __device__ vec<T, 16 / sizeof(T)> ldmatrix_sync_aligned_m8n8_x4_trans_b16(const T* row) {
  const unsigned place = (unsigned)__cvta_generic_to_shared(row);
  unsigned a0, a1, a2, a3;
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3)
      : "r"(place)
      : "memory");
  return bits_as<vec<T, 16 / sizeof(T)>>(vec<unsigned, 4>::of(a0, a1, a2, a3));
}

extern "C" __global__ void __launch_bounds__(32)
load_trans_bf16_kernel0(
    const unsigned short* __restrict__ A,
    unsigned short* __restrict__ D) {
  __shared__ __align__(16) unsigned short S[768];
  const long long t = threadIdx.x;
  const long long t_1 = (long long)(t * 24ull);
  const long long t_2 = (long long)(t * 8ull);
  for (long long k = 0ll; k < 8ll; ++k) {
    S[(unsigned long long)t_1 + k] = A[(unsigned long long)t_2 + k];
  }
  store_wide<16>(&D[t_2], ldmatrix_sync_aligned_m8n8_x4_trans_b16(&S[t_1]));
}

