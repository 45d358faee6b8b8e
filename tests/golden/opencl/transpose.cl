#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(16, 4, 1)))
void transpose(
    __global const float* restrict A,
    __global float* restrict B) {
  __local float T[272] __attribute__((aligned(16)));
  const long by = get_group_id(1);
  const long bx = get_group_id(0);
  const long ty = get_local_id(1);
  const long tx = get_local_id(0);
  for (long r = 0l; r < 4l; ++r) {
    T[(r * 4ul + ty) * 17ul + tx] = A[(by * 16ul + r * 4ul + ty) * 48ul + bx * 16ul + tx];
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (long r = 0l; r < 4l; ++r) {
    B[(bx * 16ul + r * 4ul + ty) * 32ul + by * 16ul + tx] = T[tx * 17ul + r * 4ul + ty];
  }
}

