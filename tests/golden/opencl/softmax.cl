#pragma OPENCL FP_CONTRACT OFF

static long shift_right_i64(long a, long b) {
  return a >> ((ulong)b < 64 ? b : 64 - 1);
}

static float greatest_f32(float a, float b) {
  return b > a || b != b ? b : a;
}

__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void softmax(
    __global const float* restrict A,
    __global float* restrict B) {
  __local float T[16] __attribute__((aligned(16)));
  const long row = get_group_id(0);
  const long t = get_local_id(0);
  float kept[2];
  kept[0l] = A[row * 16ul + t];
  T[t] = kept[0l];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (long k = 0l; k < 4l; ++k) {
    if (t < shift_right_i64(8l, k)) {
      T[t] = greatest_f32(T[t], T[(ulong)t + shift_right_i64(8l, k)]);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
  kept[0l] = exp(kept[0l] - T[0l]);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  T[t] = kept[0l];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (long k = 0l; k < 4l; ++k) {
    if (t < shift_right_i64(8l, k)) {
      T[t] = T[t] + T[(ulong)t + shift_right_i64(8l, k)];
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
  B[row * 16ul + t] = kept[0l] / T[0l];
}

