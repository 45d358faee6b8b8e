// Kernels as others write them: each does one thing that CUDA programs do. `cuda_kernels.py` has the
// arguments, and what each computes.

#include <cuda_fp16.h>

#define FULL 0xffffffffu

extern "C" {

__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void grid_stride(int n, const float *x, float *y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = x[i] * x[i] - 1.0f;
}

__global__ void block_sum(int n, const float *x, float *sums) {
    extern __shared__ float part[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}

__device__ float warp_sum(float v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(FULL, v, d);
    return v;
}

__global__ void shuffled_sum(int n, const float *x, float *sum) {
    __shared__ float part[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = warp_sum(i < n ? x[i] : 0.0f);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = warp_sum(threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) atomicAdd(sum, v);
    }
}

__global__ void inclusive_scan(int n, const int *x, int *y) {
    __shared__ int buffer[2][256];
    int t = threadIdx.x, now = 0;
    buffer[0][t] = t < n ? x[t] : 0;
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        int next = 1 - now;
        buffer[next][t] = buffer[now][t] + (t >= d ? buffer[now][t - d] : 0);
        now = next;
        __syncthreads();
    }
    if (t < n) y[t] = buffer[now][t];
}

__global__ void warp_scan(int n, const int *x, int *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    int v = i < n ? x[i] : 0;
    for (int d = 1; d < 32; d *= 2) {
        int below = __shfl_up_sync(FULL, v, d);
        if (lane >= d) v += below;
    }
    if (i < n) y[i] = v;
}

__global__ void histogram(int n, const unsigned char *x, unsigned *counts) {
    __shared__ unsigned own[256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x) own[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[x[i]], 1u);
    __syncthreads();
    for (int k = threadIdx.x; k < 256; k += blockDim.x) atomicAdd(&counts[k], own[k]);
}

__global__ void transpose(int rows, int columns, const float *x, float *y) {
    __shared__ float tile[16][17];
    int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
    if (r < rows && c < columns) tile[threadIdx.y][threadIdx.x] = x[r * columns + c];
    __syncthreads();
    int tr = blockIdx.x * 16 + threadIdx.y, tc = blockIdx.y * 16 + threadIdx.x;
    if (tr < columns && tc < rows) y[tr * rows + tc] = tile[threadIdx.x][threadIdx.y];
}

__global__ void row_softmax(int columns, const float *x, float *y) {
    __shared__ float part[64];
    const float *row = x + blockIdx.x * columns;
    int t = threadIdx.x;
    float most = -1e30f;
    for (int c = t; c < columns; c += 64) most = fmaxf(most, row[c]);
    part[t] = most;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) part[t] = fmaxf(part[t], part[t + half]);
        __syncthreads();
    }
    most = part[0];
    __syncthreads();
    float sum = 0.0f;
    for (int c = t; c < columns; c += 64) sum += expf(row[c] - most);
    part[t] = sum;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    for (int c = t; c < columns; c += 64) y[blockIdx.x * columns + c] = expf(row[c] - most) / part[0];
}

__global__ void tiled_matmul(int n, const float *a, const float *b, float *c) {
    __shared__ float as[16][16], bs[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 16) {
        as[threadIdx.y][threadIdx.x] = row < n && k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0.0f;
        bs[threadIdx.y][threadIdx.x] = column < n && k + threadIdx.y < n ? b[(k + threadIdx.y) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

__global__ void stencil(int n, const float *x, float *y) {
    __shared__ float near[128 + 2];
    int i = blockIdx.x * 128 + threadIdx.x;
    near[threadIdx.x + 1] = i < n ? x[i] : 0.0f;
    if (threadIdx.x == 0) near[0] = i > 0 ? x[i - 1] : 0.0f;
    if (threadIdx.x == 127) near[129] = i + 1 < n ? x[i + 1] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = near[threadIdx.x] + 2.0f * near[threadIdx.x + 1] + near[threadIdx.x + 2];
}

__device__ unsigned finished;

__global__ void last_block_sum(int n, const int *x, volatile int *parts, int *sum) {
    __shared__ int total;
    __shared__ bool is_last;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&total, x[i]);
    __syncthreads();
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = total;
        __threadfence();
        is_last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        int all = 0;
        for (unsigned k = 0; k < gridDim.x; k++) all += parts[k];
        *sum = all;
    }
}

__global__ void compact(int n, const int *x, int *kept, int *count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    bool keep = i < n && x[i] % 3 == 0;
    unsigned votes = __ballot_sync(FULL, keep);
    int base = 0;
    if (lane == 0 && votes) base = atomicAdd(count, __popc(votes));
    base = __shfl_sync(FULL, base, 0);
    if (keep) kept[base + __popc(votes & ((1u << lane) - 1))] = x[i];
}

__global__ void bitonic_sort(int *x) {
    __shared__ int data[128];
    int t = threadIdx.x;
    data[t] = x[t];
    for (int size = 2; size <= 128; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            int other = t ^ step;
            if (other > t) {
                bool up = (t & size) == 0;
                if ((data[t] > data[other]) == up) {
                    int kept = data[t];
                    data[t] = data[other];
                    data[other] = kept;
                }
            }
        }
    __syncthreads();
    x[t] = data[t];
}

__device__ __noinline__ int gcd(int a, int b) { return b == 0 ? a : gcd(b, a % b); }

__global__ void common_divisors(int n, const int *a, const int *b, int *c) {
    int i = threadIdx.x;
    if (i < n) c[i] = gcd(a[i], b[i]);
}

struct Pair {
    double value;
    int place;
};

__device__ __noinline__ Pair larger(Pair a, Pair b) { return a.value >= b.value ? a : b; }

__global__ void largest_of_each(int columns, const double *x, double *values, int *places) {
    Pair best = {x[threadIdx.x * columns], 0};
    for (int c = 1; c < columns; c++) {
        Pair one = {x[threadIdx.x * columns + c], c};
        best = larger(best, one);
    }
    values[threadIdx.x] = best.value;
    places[threadIdx.x] = best.place;
}

__global__ void half_products(int n, const __half *x, const __half *y, __half *z) {
    int i = threadIdx.x;
    if (i < n) z[i] = __hadd(__hmul(x[i], y[i]), __float2half(0.5f));
}

__global__ void local_rank(int n, const float *x, int *rank) {
    float own[8];
    for (int k = 0; k < 8; k++) own[k] = x[threadIdx.x * 8 + k];
    for (int k = 0; k < 8; k++) {
        int place = 0;
        for (int j = 0; j < 8; j++) place += own[j] < own[k] || (own[j] == own[k] && j < k);
        rank[threadIdx.x * 8 + place] = k;
    }
}

__constant__ float taps[5] = {0.1f, 0.2f, 0.4f, 0.2f, 0.1f};

__global__ void filter(int n, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = -2; k <= 2; k++)
        if (i + k >= 0 && i + k < n) sum += taps[k + 2] * x[i + k];
    y[i] = sum;
}

__global__ void spin_lock(int *lock, int *counter) {
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
        *counter = *counter + 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}

__global__ void powers(int n, const double *x, double *y) {
    int i = threadIdx.x;
    if (i < n) y[i] = pow(fabs(x[i]), 1.5) + log(1.0 + x[i] * x[i]) + sin(x[i]);
}

__global__ void long_division(int n, const long long *a, const long long *b, long long *q) {
    int i = threadIdx.x;
    if (i < n) q[i] = b[i] == 0 ? -1 : a[i] / b[i] + (a[i] % b[i] << 1);
}

__global__ void bits(int n, const unsigned *x, unsigned *y) {
    int i = threadIdx.x;
    if (i < n) y[i] = __popc(x[i]) + 100 * __clz(x[i]) + 10000 * __ffs(x[i]) + (__brev(x[i]) & 1) * 1000000;
}

__global__ void dot4(int n, const int *x, const int *y, int *z) {
    int i = threadIdx.x;
    int sum;
    if (i >= n) return;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(x[i]), "r"(y[i]), "r"(7));
    z[i] = sum;
}

}
