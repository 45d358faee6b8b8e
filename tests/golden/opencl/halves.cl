#pragma OPENCL FP_CONTRACT OFF

static float from_bits_f16(ushort a) {
  return vload_half(0, (const __private half*)&a);
}

static ushort to_bits_f16_f32(float a) {
  ushort bits;
  vstore_half_rte(a, 0, (__private half*)&bits);
  return a == a ? bits : (ushort)0x7e00;
}

static float greatest_f32(float a, float b) {
  return b > a || b != b ? b : a;
}

__kernel __attribute__((reqd_work_group_size(4, 1, 1)))
void halves(
    __global const ushort* restrict A,
    __global const ushort* restrict B,
    __global ushort* restrict C,
    __global float* restrict D,
    const ushort x_passed,
    const uchar add_passed) {
  const float x = from_bits_f16(x_passed);
  const bool add = add_passed != 0;
  const long bx = get_group_id(0);
  const long tx = get_local_id(0);
  const long i = (long)((bx * 4ul + tx) * 4ul);
  const ushort4 t = vload4(0, &A[i]);
  const ushort4 t_1 = vload4(0, &B[i]);
  const float4 t_2 = (float4)(from_bits_f16(t.s0), from_bits_f16(t.s1), from_bits_f16(t.s2), from_bits_f16(t.s3)) * (float4)(from_bits_f16(t_1.s0), from_bits_f16(t_1.s1), from_bits_f16(t_1.s2), from_bits_f16(t_1.s3));
  const ushort4 t_3 = (ushort4)(to_bits_f16_f32(t_2.s0), to_bits_f16_f32(t_2.s1), to_bits_f16_f32(t_2.s2), to_bits_f16_f32(t_2.s3));
  const float4 t_4 = (float4)(from_bits_f16(t_3.s0), from_bits_f16(t_3.s1), from_bits_f16(t_3.s2), from_bits_f16(t_3.s3)) + (float4)(x);
  const ushort4 t_5 = (ushort4)(to_bits_f16_f32(t_4.s0), to_bits_f16_f32(t_4.s1), to_bits_f16_f32(t_4.s2), to_bits_f16_f32(t_4.s3));
  vstore4(t_5, 0, &C[i]);
  for (long j = 0l; j < 4l; ++j) {
    if (add) {
      D[(ulong)i + j] = greatest_f32(from_bits_f16(to_bits_f16_f32(from_bits_f16(A[(ulong)i + j]) + from_bits_f16(B[(ulong)i + j]))), x);
    } else {
      D[(ulong)i + j] = from_bits_f16(to_bits_f16_f32(from_bits_f16(to_bits_f16_f32(from_bits_f16(A[(ulong)i + j]) / from_bits_f16(B[(ulong)i + j]))) - 0x1.998p-4f));
    }
  }
}

