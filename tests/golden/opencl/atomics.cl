#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

static void atomic_add_global_f32(volatile __global float* place, float b) {
  volatile __global uint* bits = (volatile __global uint*)place;
  uint found = 0, expected;
  do {
    expected = found;
    const float a = as_float(expected);
    found = atomic_cmpxchg(bits, expected, as_uint(a + b));
  } while (found != expected);
}

static float least_f32(float a, float b) {
  return b < a || b != b ? b : a;
}

static void atomic_min_global_f32(volatile __global float* place, float b) {
  volatile __global uint* bits = (volatile __global uint*)place;
  uint found = 0, expected;
  do {
    expected = found;
    const float a = as_float(expected);
    found = atomic_cmpxchg(bits, expected, as_uint(least_f32(a, b)));
  } while (found != expected);
}

static float greatest_f32(float a, float b) {
  return b > a || b != b ? b : a;
}

static void atomic_max_global_f32(volatile __global float* place, float b) {
  volatile __global uint* bits = (volatile __global uint*)place;
  uint found = 0, expected;
  do {
    expected = found;
    const float a = as_float(expected);
    found = atomic_cmpxchg(bits, expected, as_uint(greatest_f32(a, b)));
  } while (found != expected);
}

static void atomic_add_global_f64(volatile __global double* place, double b) {
  volatile __global ulong* bits = (volatile __global ulong*)place;
  ulong found = 0, expected;
  do {
    expected = found;
    const double a = as_double(expected);
    found = atom_cmpxchg(bits, expected, as_ulong(a + b));
  } while (found != expected);
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void atomics(
    __global const int* restrict A,
    __global const float* restrict F,
    __global const double* restrict D,
    __global int* restrict I,
    __global ulong* restrict L,
    __global float* restrict R,
    __global double* restrict S) {
  __local int T[1] __attribute__((aligned(16)));
  const long g = get_group_id(0);
  const long t = get_local_id(0);
  if (t == 0l) {
    T[0l] = 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const long i = (long)(g * 64ul + t);
  atomic_add(&T[0l], A[i]);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (t == 0l) {
    atomic_add(&I[0l], T[0l]);
  }
  atomic_max(&I[1l], A[i]);
  atomic_xor(&I[2l], A[i]);
  atomic_or(&I[3l], A[i]);
  atom_add(&L[0l], (ulong)A[i]);
  atom_min(&L[1l], (ulong)A[i]);
  atom_and(&L[2l], (ulong)A[i]);
  atomic_add_global_f32(&R[0l], F[i]);
  atomic_min_global_f32(&R[1l], F[i]);
  atomic_max_global_f32(&R[2l], F[i]);
  atomic_add_global_f64(&S[0l], D[i]);
}

