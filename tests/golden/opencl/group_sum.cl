#pragma OPENCL FP_CONTRACT OFF

__kernel void group_sum(
    __global const float* restrict A,
    __global float* restrict S,
    const long groups,
    const long threads,
    __local float* restrict T) {
  const long g = get_group_id(0);
  const long t = get_local_id(0);
  T[t] = A[(ulong)g * threads + t];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (t == 0l) {
    float sum[1];
    sum[0l] = 0.0f;
    for (long i = 0l; i < threads; ++i) {
      sum[0l] = sum[0l] + T[i];
    }
    S[g] = sum[0l];
  }
}

