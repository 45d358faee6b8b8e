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

template <typename T, int N>
static __device__ void store_lanes(T* place, vec<T, N> a) {
  for (int i = 0; i < N; ++i) place[i] = a.lanes[i];
}

template <int bytes> struct word_of;
template <> struct word_of<2> { using type = unsigned short; };
template <> struct word_of<4> { using type = unsigned; };
template <> struct word_of<8> { using type = uint2; };
template <> struct word_of<16> { using type = uint4; };

template <int N, int bytes, typename T>
static __device__ vec<T, N> load_wide(const T* place) {
  vec<T, N> a;
  for (int i = 0; i < N * int(sizeof(T)) / bytes; ++i) {
    const auto part = ((const typename word_of<bytes>::type*)place)[i];
    memcpy((char*)a.lanes + i * bytes, &part, bytes);
  }
  return a;
}

template <int bytes, typename T, int N>
static __device__ void store_wide(T* place, vec<T, N> a) {
  for (int i = 0; i < N * int(sizeof(T)) / bytes; ++i) {
    typename word_of<bytes>::type part;
    memcpy(&part, (char*)a.lanes + i * bytes, bytes);
    ((typename word_of<bytes>::type*)place)[i] = part;
  }
}

extern "C" __global__ void __launch_bounds__(64)
blocked(
    const float* __restrict__ A,
    const float* __restrict__ B,
    float* __restrict__ C) {
  __shared__ __align__(16) float As[256];
  __shared__ __align__(16) float Bs[256];
  const long long ty = threadIdx.y;
  const long long tx = threadIdx.x;
  __align__(16) float sum[16];
  for (long long i = 0ll; i < 4ll; ++i) {
    store_wide<16>(&sum[i * 4ull], vec<float, 4>::of(0.0f));
  }
  for (long long s = 0ll; s < 3ll; ++s) {
    __syncthreads();
    store_wide<16>(&As[ty * 32ull + tx * 4ull], load_lanes<4>(&A[(s * 8ull + ty) * 32ull + tx * 4ull]));
    store_wide<16>(&Bs[ty * 32ull + tx * 4ull], load_lanes<4>(&B[(s * 8ull + ty) * 32ull + tx * 4ull]));
    __syncthreads();
    for (long long r = 0ll; r < 8ll; ++r) {
      const vec<float, 4> b = load_wide<4, 16>(&Bs[r * 32ull + tx * 4ull]);
      for (long long i = 0ll; i < 4ll; ++i) {
        const vec<float, 4> t = vec<float, 4>::of(As[r * 32ull + ty * 4ull + i]);
        const vec<float, 4> t_1 = load_wide<4, 16>(&sum[i * 4ull]);
        store_wide<16>(&sum[i * 4ull], vec<float, 4>::of(fma(t[0], b[0], t_1[0]), fma(t[1], b[1], t_1[1]), fma(t[2], b[2], t_1[2]), fma(t[3], b[3], t_1[3])));
      }
    }
  }
  for (long long i = 0ll; i < 4ll; ++i) {
    store_lanes(&C[(ty * 4ull + i) * 32ull + tx * 4ull], load_wide<4, 16>(&sum[i * 4ull]));
  }
}

