// CUDA C++ on this machine: each CUDA thread of a group is a thread of C++ (process.cpp runs them).
//
// A kernel is an ordinary function. Shared arrays are static, so one group runs at a time. They have
// a section of their own, so that a group does not find what the last one left. Threads of a warp
// exchange values through slots, between two meetings of the warp. Atomics order nothing else, as in
// CUDA.

#include <math.h>
#include <string.h>

#include <cmath>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __shared__ static __attribute__((section("shared_arrays")))
#define __restrict__ __restrict
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(threads)

struct dim3 {
  unsigned x, y, z;
};

// What wide accesses move: as on a GPU, a place must be aligned to its size.
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

// What the process has.
extern thread_local dim3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
extern unsigned char* dynamic_shared;
void meet_group(int line);        // returns when all threads of the group are at the same line
void meet_warp(int operation);    // returns when all threads of the warp do the same
unsigned char* slot_of(unsigned lane);  // 32 bytes of a lane of this warp
[[noreturn]] void report(const char* fault, int number);

#define __syncthreads() meet_group(__LINE__)

// An asynchronous copy is made when its thread waits, so that a missing wait is a wrong result.
struct AsyncCopy {
  void* target;
  const void* source;
  size_t size;
};
constexpr int max_copies = 4096;
inline thread_local AsyncCopy copies[max_copies];
inline thread_local int begun = 0, committed = 0;

inline void __pipeline_memcpy_async(void* target, const void* source, size_t size) {
  if (size != 4 && size != 8 && size != 16) report("an asynchronous copy has a wrong size", int(size));
  if ((size_t)target % size || (size_t)source % size) report("an asynchronous copy is not aligned", int(size));
  if (begun == max_copies) report("too many asynchronous copies", begun);
  copies[begun++] = {target, source, size};
}

inline void __pipeline_commit() { committed = begun; }

inline void __pipeline_wait_prior(int) {
  for (int i = 0; i < committed; ++i) memcpy(copies[i].target, copies[i].source, copies[i].size);
  for (int i = committed; i < begun; ++i) copies[i - committed] = copies[i];
  begun -= committed;
  committed = 0;
}

inline unsigned own_lane() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}

// The value of each lane's own choice.
template <typename T>
T exchange(T a, unsigned lane, int operation) {
  static_assert(sizeof a <= 16);
  memcpy(slot_of(own_lane()), &a, sizeof a);
  meet_warp(operation);
  memcpy(&a, slot_of(lane % 32), sizeof a);
  meet_warp(operation);
  return a;
}

template <typename T>
T __shfl_sync(unsigned, T a, unsigned lane) { return exchange(a, lane, 1); }

template <typename T>
T __shfl_xor_sync(unsigned, T a, unsigned mask) { return exchange(a, own_lane() ^ mask, 2); }

template <typename T>
T atomicCAS(T* place, T expected, T a) {
  __atomic_compare_exchange(place, &expected, &a, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

template <typename T, typename F>
T atomic_change(T* place, F change) {
  T old, changed;
  __atomic_load(place, &old, __ATOMIC_RELAXED);
  do {
    changed = change(old);
  } while (!__atomic_compare_exchange(place, &old, &changed, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}

#define ATOMIC(name, expression) \
  template <typename T> \
  T name(T* place, T b) { return atomic_change(place, [b](T a) { return T(expression); }); }
ATOMIC(atomicAdd, (unsigned long long)a + (unsigned long long)b)
ATOMIC(atomicMin, b < a ? b : a)
ATOMIC(atomicMax, b > a ? b : a)
ATOMIC(atomicAnd, a & b)
ATOMIC(atomicOr, a | b)
ATOMIC(atomicXor, a ^ b)
#undef ATOMIC
inline double atomicAdd(double* place, double b) {
  return atomic_change(place, [b](double a) { return a + b; });
}

inline int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
inline int __clzll(long long a) { return a ? __builtin_clzll(a) : 64; }
using std::acosh, std::asinh, std::atanh, std::copysign, std::erf, std::exp2, std::expm1, std::fma;
using std::fmod, std::hypot, std::log1p, std::log2, std::rint, std::trunc;
inline float exp10(float a) { return std::pow(10.0f, a); }

// f16 by its bits, rounded once from any float, ties to even.
inline unsigned short rounded_to_half(double a) {
  const unsigned short sign = std::signbit(a) ? 0x8000 : 0;
  const double size = std::fabs(a);
  if (size != size) return 0x7e00;
  if (size >= 65520.0) return (unsigned short)(sign | 0x7c00);
  int exponent;
  std::frexp(size, &exponent);
  exponent = exponent < -13 || size == 0 ? -13 : exponent;
  const double digits = std::nearbyint(std::ldexp(size, 11 - exponent));  // below 2^11, or 2^11 itself
  return (unsigned short)(sign | (unsigned short)(digits + (exponent + 13) * 1024.0));
}

struct __half {
  unsigned short bits;

  __half() = default;
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  __half(T a) : bits(rounded_to_half(double(a))) {}

  operator float() const {
    const int exponent = bits >> 10 & 31;
    const int digits = bits & 1023;
    float value = exponent ? std::ldexp(float(digits + 1024), exponent - 25) : std::ldexp(float(digits), -24);
    if (exponent == 31) value = digits ? NAN : INFINITY;
    return bits >> 15 ? -value : value;
  }
};

inline float __half2float(__half a) { return a; }
inline __half __float2half_rn(float a) { return a; }
inline unsigned short __half_as_ushort(__half a) { return a.bits; }
inline __half __ushort_as_half(unsigned short bits) {
  __half a;
  a.bits = bits;
  return a;
}
inline __half __habs(__half a) { return __ushort_as_half(a.bits & 0x7fff); }

// A sum, difference or product of two f16 is exact in f64, or far from a tie of f16.
inline __half __hadd_rn(__half a, __half b) { return double(float(a)) + float(b); }
inline __half __hsub_rn(__half a, __half b) { return double(float(a)) - float(b); }
inline __half __hmul_rn(__half a, __half b) { return double(float(a)) * float(b); }
inline bool __heq(__half a, __half b) { return float(a) == float(b); }
inline bool __hneu(__half a, __half b) { return float(a) != float(b); }
inline bool __hlt(__half a, __half b) { return float(a) < float(b); }
inline bool __hle(__half a, __half b) { return float(a) <= float(b); }
inline bool __hgt(__half a, __half b) { return float(a) > float(b); }
inline bool __hge(__half a, __half b) { return float(a) >= float(b); }

struct alignas(4) __half2 {
  __half x, y;
};

inline __half2 __halves2half2(__half a, __half b) { return {a, b}; }
inline __half __low2half(__half2 a) { return a.x; }
inline __half __high2half(__half2 a) { return a.y; }
inline __half2 __hadd2_rn(__half2 a, __half2 b) { return {__hadd_rn(a.x, b.x), __hadd_rn(a.y, b.y)}; }
inline __half2 __hsub2_rn(__half2 a, __half2 b) { return {__hsub_rn(a.x, b.x), __hsub_rn(a.y, b.y)}; }
inline __half2 __hmul2_rn(__half2 a, __half2 b) { return {__hmul_rn(a.x, b.x), __hmul_rn(a.y, b.y)}; }

// An argument from its address: the address itself for an array, else the value there.
template <typename P>
P argument(void* place) {
  if constexpr (std::is_pointer_v<P>) return (P)place;
  else return *(P*)place;
}

template <typename... P, std::size_t... I>
void call_with(void (*kernel)(P...), void** places, std::index_sequence<I...>) {
  kernel(argument<P>(places[I])...);
}

template <typename... P>
void call(void (*kernel)(P...), void** places, int count, unsigned bound) {
  if (count != sizeof...(P)) report("parameters of the kernel", sizeof...(P));
  if (blockDim.x * blockDim.y * blockDim.z > bound) report("launch bound of the kernel", bound);
  call_with(kernel, places, std::index_sequence_for<P...>());
}

#define KERNEL(name, bound) \
  extern "C" void call_##name(void** places, int count) { call(name, places, count, bound); }

// The memory of all shared arrays; none if there is none.
extern unsigned char shared_begin[] __asm__("__start_shared_arrays") __attribute__((weak, visibility("hidden")));
extern unsigned char shared_end[] __asm__("__stop_shared_arrays") __attribute__((weak, visibility("hidden")));
extern "C" inline __attribute__((used)) unsigned char* shared_memory(int is_end) { return is_end ? shared_end : shared_begin; }
