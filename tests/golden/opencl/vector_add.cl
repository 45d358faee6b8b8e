#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void vector_add(
    __global const float* restrict A,
    __global const float* restrict B,
    __global float* restrict C,
    const long n,
    const long groups) {
  const long bx = get_group_id(0);
  const long tx = get_local_id(0);
  if ((long)(bx * 64ul + tx) < n) {
    C[bx * 64ul + tx] = A[bx * 64ul + tx] + B[bx * 64ul + tx];
  }
}

