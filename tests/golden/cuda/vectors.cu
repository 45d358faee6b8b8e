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

template <typename M, typename T, int N>
static __device__ vec<T, N> choose(vec<M, N> condition, vec<T, N> yes, vec<T, N> no) {
  for (int i = 0; i < N; ++i) no.lanes[i] = condition.lanes[i] ? yes.lanes[i] : no.lanes[i];
  return no;
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

template <typename To, typename T, int N>
static __device__ To convert(vec<T, N> a) {
  To b;
  for (int i = 0; i < N; ++i) b.lanes[i] = a.lanes[i];
  return b;
}

static __device__ vec<float, 4> least_f32x4(vec<float, 4> a, vec<float, 4> b) {
  return choose((b < a) | (b != b), b, a);
}

extern "C" __global__ void __launch_bounds__(8)
vectors(
    const float* __restrict__ A,
    const unsigned char* __restrict__ M,
    float* __restrict__ B,
    unsigned char* __restrict__ K,
    const long long n,
    const long long groups) {
  const long long bx = blockIdx.x;
  const long long tx = threadIdx.x;
  const long long first = (long long)((bx * 8ull + tx) * 4ull);
  if ((long long)(first + 4ull) <= n) {
    const vec<float, 4> a = load_lanes<4>(&A[first]);
    const vec<signed char, 4> mask = (load_lanes<4>(&M[first]) != vec<unsigned char, 4>::of(0)) & convert<vec<signed char, 4>>(a < vec<float, 4>::of(2.5f));
    store_lanes(&B[first], choose(convert<vec<int, 4>>(mask), least_f32x4(a, vec<float, 4>::of(1.0f)) * a, vec<float, 4>::of(exp(a[0]), exp(a[1]), exp(a[2]), exp(a[3]))));
    store_lanes(&K[first], bits_as<vec<unsigned char, 4>>(~mask & vec<signed char, 4>::of(1)));
  } else {
    const vec<signed char, 4> rest = convert<vec<signed char, 4>>(bits_as<vec<long long, 4>>(vec<unsigned long long, 4>::of((unsigned long long)first) + vec<unsigned long long, 4>::of(0ull, 1ull, 2ull, 3ull)) < vec<long long, 4>::of(n));
    const long long t = (long long)(n - 1ull);
    const vec<float, 4> t_1 = vec<float, 4>::of(rest[0] ? A[t] : 0.0f, rest[1] ? A[t - 1ll] : 0.0f, rest[2] ? A[t - 2ll] : 0.0f, rest[3] ? A[t - 3ll] : 0.0f) / vec<float, 4>::of(3.0f);
    if (rest[0]) B[first] = t_1[0];
    if (rest[1]) B[first + 1ll] = t_1[1];
    if (rest[2]) B[first + 2ll] = t_1[2];
    if (rest[3]) B[first + 3ll] = t_1[3];
  }
}

