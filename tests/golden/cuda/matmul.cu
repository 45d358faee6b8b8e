extern "C" __global__ void __launch_bounds__(256)
matmul(
    const float* __restrict__ A,
    const float* __restrict__ B,
    float* __restrict__ C,
    const long long k) {
  __shared__ __align__(16) float As[256];
  __shared__ __align__(16) float Bs[256];
  const long long by = blockIdx.y;
  const long long bx = blockIdx.x;
  const long long ty = threadIdx.y;
  const long long tx = threadIdx.x;
  float sum[1];
  sum[0ll] = 0.0f;
  const long long t = k >> 4ll;
  for (long long s = 0ll; s < t; ++s) {
    __syncthreads();
    As[ty * 16ull + tx] = A[(by * 16ull + ty) * k + s * 16ull + tx];
    Bs[ty * 16ull + tx] = B[(s * 16ull + ty) * 32ull + bx * 16ull + tx];
    __syncthreads();
    for (long long r = 0ll; r < 16ll; ++r) {
      sum[0ll] = sum[0ll] + As[ty * 16ull + r] * Bs[r * 16ull + tx];
    }
  }
  C[(by * 16ull + ty) * 32ull + bx * 16ull + tx] = sum[0ll];
}

