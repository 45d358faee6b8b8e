#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

static half greatest_f16(half a, half b) {
  return b > a || b != b ? b : a;
}

__kernel __attribute__((reqd_work_group_size(4, 1, 1)))
void halves(
    __global const half* restrict A,
    __global const half* restrict B,
    __global half* restrict C,
    __global float* restrict D,
    const half x,
    const uchar add_passed) {
  const bool add = add_passed != 0;
  const long bx = get_group_id(0);
  const long tx = get_local_id(0);
  const long i = (long)((bx * 4ul + tx) * 4ul);
  vstore4(vload4(0, &A[i]) * vload4(0, &B[i]) + (half4)(x), 0, &C[i]);
  for (long j = 0l; j < 4l; ++j) {
    if (add) {
      D[(ulong)i + j] = (float)greatest_f16(A[(ulong)i + j] + B[(ulong)i + j], x);
    } else {
      D[(ulong)i + j] = (float)(A[(ulong)i + j] / B[(ulong)i + j] - 0x1.998p-4h);
    }
  }
}

