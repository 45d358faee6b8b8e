extern "C" __global__ void __launch_bounds__(32)
gather(
    const float* __restrict__ A,
    const int* __restrict__ I,
    float* __restrict__ B,
    const long long rows,
    const long long n,
    const long long groups) {
  const long long g = blockIdx.x;
  const long long t = threadIdx.x;
  const long long place = (long long)(g * 32ull + t);
  if (place < (long long)(n * 8ull)) {
    const long long row = (long long)I[place >> 3ll];
    B[place] = 0ll <= row && row < rows ? A[row * 8ull + (place & 7ll)] : 0.0f;
  }
}

