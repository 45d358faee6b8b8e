#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void bytes(
    __global const char* restrict A,
    __global const uchar* restrict B,
    __global int* restrict S,
    __global char* restrict C) {
  const long g = get_group_id(0);
  const long t = get_local_id(0);
  int sum[1];
  sum[0l] = 0;
  for (long k = 0l; k < 4l; ++k) {
    const int4 a = convert_int4(vload4(0, &A[(g * 16ul + t) * 16ul + k * 4ul]));
    const int4 b = convert_int4(vload4(0, &B[(g * 16ul + t) * 16ul + k * 4ul]));
    int product[4];
    vstore4(as_int4(as_uint4(a) * as_uint4(b)), 0, &product[0l]);
    for (long j = 0l; j < 4l; ++j) {
      sum[0l] = (int)((uint)sum[0l] + product[j]);
    }
  }
  S[g * 16ul + t] = sum[0l];
  C[g * 16ul + t] = (char)min(max(sum[0l] >> 8, -128), 127);
}

