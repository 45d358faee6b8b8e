#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void gather(
    __global const float* restrict A,
    __global const int* restrict I,
    __global float* restrict B,
    const long rows,
    const long n,
    const long groups) {
  const long g = get_group_id(0);
  const long t = get_local_id(0);
  const long place = (long)(g * 32ul + t);
  if (place < (long)(n * 8ul)) {
    const long row = (long)I[place >> 3l];
    B[place] = 0l <= row && row < rows ? A[row * 8ul + (place & 7l)] : 0.0f;
  }
}

