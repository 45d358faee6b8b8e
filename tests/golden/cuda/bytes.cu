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

template <int N, typename T>
static __device__ vec<T, N> load_lanes(const T* place) {
  vec<T, N> a;
  for (int i = 0; i < N; ++i) a.lanes[i] = place[i];
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

template <typename To, typename T, int N>
static __device__ To convert(vec<T, N> a) {
  To b;
  for (int i = 0; i < N; ++i) b.lanes[i] = a.lanes[i];
  return b;
}

template <typename T>
static __device__ T lesser(T a, T b) { return b < a ? b : a; }

template <typename T, int N>
static __device__ vec<T, N> lesser(vec<T, N> a, vec<T, N> b) {
  vec<T, N> c;
  for (int i = 0; i < N; ++i) c.lanes[i] = lesser(a.lanes[i], b.lanes[i]);
  return c;
}

template <typename T>
static __device__ T greater(T a, T b) { return b > a ? b : a; }

template <typename T, int N>
static __device__ vec<T, N> greater(vec<T, N> a, vec<T, N> b) {
  vec<T, N> c;
  for (int i = 0; i < N; ++i) c.lanes[i] = greater(a.lanes[i], b.lanes[i]);
  return c;
}

extern "C" __global__ void __launch_bounds__(16)
bytes(
    const signed char* __restrict__ A,
    const unsigned char* __restrict__ B,
    int* __restrict__ S,
    signed char* __restrict__ C) {
  const long long g = blockIdx.x;
  const long long t = threadIdx.x;
  int sum[1];
  sum[0ll] = 0;
  for (long long k = 0ll; k < 4ll; ++k) {
    const vec<int, 4> a = convert<vec<int, 4>>(load_lanes<4>(&A[(g * 16ull + t) * 16ull + k * 4ull]));
    const vec<int, 4> b = convert<vec<int, 4>>(load_lanes<4>(&B[(g * 16ull + t) * 16ull + k * 4ull]));
    __align__(16) int product[4];
    store_wide<16>(&product[0ll], bits_as<vec<int, 4>>(bits_as<vec<unsigned, 4>>(a) * bits_as<vec<unsigned, 4>>(b)));
    for (long long j = 0ll; j < 4ll; ++j) {
      sum[0ll] = (int)((unsigned)sum[0ll] + product[j]);
    }
  }
  S[g * 16ull + t] = sum[0ll];
  C[g * 16ull + t] = (signed char)lesser(greater(sum[0ll] >> 8, -128), 127);
}

