extern "C" __global__ void __launch_bounds__(64)
transpose(
    const float* __restrict__ A,
    float* __restrict__ B) {
  __shared__ __align__(16) float T[272];
  const long long by = blockIdx.y;
  const long long bx = blockIdx.x;
  const long long ty = threadIdx.y;
  const long long tx = threadIdx.x;
  for (long long r = 0ll; r < 4ll; ++r) {
    T[(r * 4ull + ty) * 17ull + tx] = A[(by * 16ull + r * 4ull + ty) * 48ull + bx * 16ull + tx];
  }
  __syncthreads();
  for (long long r = 0ll; r < 4ll; ++r) {
    B[(bx * 16ull + r * 4ull + ty) * 32ull + by * 16ull + tx] = T[tx * 17ull + r * 4ull + ty];
  }
}

