#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(8, 8, 1)))
void blocked(
    __global const float* restrict A,
    __global const float* restrict B,
    __global float* restrict C) {
  __local float As[256] __attribute__((aligned(16)));
  __local float Bs[256] __attribute__((aligned(16)));
  const long ty = get_local_id(1);
  const long tx = get_local_id(0);
  float sum[16];
  for (long i = 0l; i < 4l; ++i) {
    vstore4((float4)(0.0f), 0, &sum[i * 4ul]);
  }
  for (long s = 0l; s < 3l; ++s) {
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    vstore4(vload4(0, &A[(s * 8ul + ty) * 32ul + tx * 4ul]), 0, &As[ty * 32ul + tx * 4ul]);
    vstore4(vload4(0, &B[(s * 8ul + ty) * 32ul + tx * 4ul]), 0, &Bs[ty * 32ul + tx * 4ul]);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (long r = 0l; r < 8l; ++r) {
      const float4 b = vload4(0, &Bs[r * 32ul + tx * 4ul]);
      for (long i = 0l; i < 4l; ++i) {
        vstore4(fma((float4)(As[r * 32ul + ty * 4ul + i]), b, vload4(0, &sum[i * 4ul])), 0, &sum[i * 4ul]);
      }
    }
  }
  for (long i = 0l; i < 4l; ++i) {
    vstore4(vload4(0, &sum[i * 4ul]), 0, &C[(ty * 4ul + i) * 32ul + tx * 4ul]);
  }
}

