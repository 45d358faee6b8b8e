#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void matmul(
    __global const float* restrict A,
    __global const float* restrict B,
    __global float* restrict C,
    const long k) {
  __local float As[256] __attribute__((aligned(16)));
  __local float Bs[256] __attribute__((aligned(16)));
  const long by = get_group_id(1);
  const long bx = get_group_id(0);
  const long ty = get_local_id(1);
  const long tx = get_local_id(0);
  float sum[1];
  sum[0l] = 0.0f;
  const long t = k >> 4l;
  for (long s = 0l; s < t; ++s) {
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    As[ty * 16ul + tx] = A[(by * 16ul + ty) * k + s * 16ul + tx];
    Bs[ty * 16ul + tx] = B[(s * 16ul + ty) * 32ul + bx * 16ul + tx];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (long r = 0l; r < 16l; ++r) {
      sum[0l] = sum[0l] + As[ty * 16ul + r] * Bs[r * 16ul + tx];
    }
  }
  C[(by * 16ul + ty) * 32ul + bx * 16ul + tx] = sum[0l];
}

