#pragma OPENCL FP_CONTRACT OFF

static long floordiv_i64(long a, long b) {
  if (b == 0) return 0;
  if (b == -1) return (long)(0 - (ulong)a);
  const long q = a / b, r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? q - 1 : q;
}

static long floormod_i64(long a, long b) {
  if (b == 0 || b == -1) return 0;
  const long r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static long shift_left_i64(long a, long b) {
  return (ulong)b < 64 ? (long)((ulong)a << b) : 0;
}

__kernel __attribute__((reqd_work_group_size(2, 2, 2)))
void control(
    __global const long* restrict A,
    __global long* restrict B,
    const char a,
    const ushort b,
    const ulong c,
    const int low) {
  const long z = get_group_id(2);
  const long y = get_group_id(1);
  const long x = get_group_id(0);
  const long tz = get_local_id(2);
  const long ty = get_local_id(1);
  const long tx = get_local_id(0);
  const long i = (long)(((z * 2ul + y) * 2ul + x) * 8ul + (tz * 2ul + ty) * 2ul + tx);
  long T[3];
  for (long k = 0l; k < 3l; ++k) {
    T[k] = A[(long)((ulong)i + k) & 63l];
  }
  const long t = (long)(1l + 2ul);
  for (long k = 1l; k < t; ++k) {
    T[0l] = (long)((ulong)floordiv_i64(T[0l], T[k]) - floormod_i64(T[0l], (long)((ulong)(long)a - k)));
  }
  if ((T[0l] > (long)b && low < 3) || c == 9ul) {
    T[1l] = shift_left_i64(T[1l], i);
  }
  long t_1;
  if (T[2l] == 0l) {
    t_1 = T[0l];
  } else {
    const long q = (long)(T[1l] * 3ul);
    t_1 = ((q >> 1l) ^ (q & T[2l])) | -7l;
  }
  B[i] = t_1;
}

