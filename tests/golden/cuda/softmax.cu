static __device__ long long shift_right_i64(long long a, long long b) {
  return a >> ((unsigned long long)b < 64 ? b : 64 - 1);
}

static __device__ float greatest_f32(float a, float b) {
  return b > a || b != b ? b : a;
}

extern "C" __global__ void __launch_bounds__(16)
softmax(
    const float* __restrict__ A,
    float* __restrict__ B) {
  __shared__ __align__(16) float T[16];
  const long long row = blockIdx.x;
  const long long t = threadIdx.x;
  __align__(16) float kept[2];
  kept[0ll] = A[row * 16ull + t];
  T[t] = kept[0ll];
  __syncthreads();
  for (long long k = 0ll; k < 4ll; ++k) {
    if (t < shift_right_i64(8ll, k)) {
      T[t] = greatest_f32(T[t], T[(unsigned long long)t + shift_right_i64(8ll, k)]);
    }
    __syncthreads();
  }
  kept[0ll] = exp(kept[0ll] - T[0ll]);
  __syncthreads();
  T[t] = kept[0ll];
  __syncthreads();
  for (long long k = 0ll; k < 4ll; ++k) {
    if (t < shift_right_i64(8ll, k)) {
      T[t] = T[t] + T[(unsigned long long)t + shift_right_i64(8ll, k)];
    }
    __syncthreads();
  }
  B[row * 16ull + t] = kept[0ll] / T[0ll];
}

