extern __shared__ __align__(16) unsigned char dynamic_shared[];

extern "C" __global__ void group_sum(
    const float* __restrict__ A,
    float* __restrict__ S,
    const long long groups,
    const long long threads,
    const unsigned long long T_begin) {
  float* const T = (float*)(dynamic_shared + T_begin);
  const long long g = blockIdx.x;
  const long long t = threadIdx.x;
  T[t] = A[(unsigned long long)g * threads + t];
  __syncthreads();
  if (t == 0ll) {
    float sum[1];
    sum[0ll] = 0.0f;
    for (long long i = 0ll; i < threads; ++i) {
      sum[0ll] = sum[0ll] + T[i];
    }
    S[g] = sum[0ll];
  }
}

