#pragma OPENCL FP_CONTRACT OFF

static float4 least_f32x4(float4 a, float4 b) {
  return select(a, b, (b < a) | (b != b));
}

__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void vectors(
    __global const float* restrict A,
    __global const uchar* restrict M,
    __global float* restrict B,
    __global uchar* restrict K,
    const long n,
    const long groups) {
  const long bx = get_group_id(0);
  const long tx = get_local_id(0);
  const long first = (long)((bx * 8ul + tx) * 4ul);
  if ((long)(first + 4ul) <= n) {
    const float4 a = vload4(0, &A[first]);
    const char4 mask = (vload4(0, &M[first]) != (uchar4)(0)) & convert_char4(a < (float4)(2.5f));
    vstore4(select((float4)(exp(a.s0), exp(a.s1), exp(a.s2), exp(a.s3)), least_f32x4(a, (float4)(1.0f)) * a, convert_int4(mask)), 0, &B[first]);
    vstore4(as_uchar4(~mask & (char4)(1)), 0, &K[first]);
  } else {
    const char4 rest = convert_char4(as_long4((ulong4)((ulong)first) + (ulong4)(0ul, 1ul, 2ul, 3ul)) < (long4)(n));
    const long t = (long)(n - 1ul);
    const float4 t_1 = (float4)(rest.s0 ? A[t] : 0.0f, rest.s1 ? A[t - 1l] : 0.0f, rest.s2 ? A[t - 2l] : 0.0f, rest.s3 ? A[t - 3l] : 0.0f) / (float4)(3.0f);
    if (rest.s0) B[first] = t_1.s0;
    if (rest.s1) B[first + 1l] = t_1.s1;
    if (rest.s2) B[first + 2l] = t_1.s2;
    if (rest.s3) B[first + 3l] = t_1.s3;
  }
}

