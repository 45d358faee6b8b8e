// Kernels whose threads work together: warps with roles, groups, pipelines, tensor cores, and blocks
// that hand data on. `cuda_cooperation.py` has the arguments, and what each computes.

#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

// A barrier in shared memory is initialized by a thread.
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

#define ALL_LANES 0xffffffffu

static __device__ __forceinline__ void named_sync(int id, int count) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
}

static __device__ __forceinline__ void named_arrive(int id, int count) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(count) : "memory");
}

static __device__ int lane_scan(int v) {
    int lane = threadIdx.x & 31;
    for (int d = 1; d < 32; d *= 2) {
        int below = __shfl_up_sync(ALL_LANES, v, d);
        if (lane >= d) v += below;
    }
    return v;
}

// Warp totals in shared memory: the inclusive scan over a block of at most 1024 threads.
static __device__ int block_scan(int v, int *totals) {
    int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    v = lane_scan(v);
    if (lane == 31) totals[warp] = v;
    __syncthreads();
    if (warp == 0) {
        int own = lane < (blockDim.x + 31) / 32 ? totals[lane] : 0;
        own = lane_scan(own);
        totals[lane] = own;
    }
    __syncthreads();
    return warp ? v + totals[warp - 1] : v;
}

extern "C" {

// Warp 0 brings tiles, warps 1 and 2 use them. Two tiles are under way.
__global__ void specialised_warps(int tiles, const float *x, float *y) {
    __shared__ float tile[2][64];
    int lane = threadIdx.x % 32;
    const float *mine = x + blockIdx.x * tiles * 64;
    if (threadIdx.x < 32) {
        for (int k = 0; k < tiles; k++) {
            int stage = k & 1;
            if (k >= 2) named_sync(3 + stage, 96);
            tile[stage][lane] = mine[k * 64 + lane];
            tile[stage][lane + 32] = mine[k * 64 + lane + 32];
            named_arrive(1 + stage, 96);
        }
    } else {
        int i = threadIdx.x - 32;
        float sum = 0.0f;
        for (int k = 0; k < tiles; k++) {
            int stage = k & 1;
            named_sync(1 + stage, 96);
            sum += tile[stage][i] * tile[stage][63 - i];
            if (k + 2 < tiles) named_arrive(3 + stage, 96);
        }
        y[blockIdx.x * 64 + i] = sum;
    }
}

// Each warp waits for the one before it, adds its total, and lets the next one go on.
__global__ void chained_warps(const int *x, int *y) {
    __shared__ int carry;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, before = 0;
    int v = lane_scan(x[threadIdx.x]);
    if (warp > 0) {
        named_sync(warp, 64);
        before = carry;
        __syncwarp();
    }
    if (lane == 31) carry = before + v;
    if (warp < blockDim.x / 32 - 1) named_arrive(warp + 1, 64);
    y[threadIdx.x] = before + v;
}

__global__ void tile_sums(const int *x, int *sums) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    int v = x[blockIdx.x * block.size() + block.thread_rank()];
    for (int d = tile.size() / 2; d > 0; d /= 2) v += tile.shfl_xor(v, d);
    if (tile.thread_rank() == 0) sums[blockIdx.x * tile.meta_group_size() + tile.meta_group_rank()] = v;
}

__global__ void append_positive(int n, const int *x, int *kept, int *count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0) {
        cg::coalesced_group active = cg::coalesced_threads();
        int base = 0;
        if (active.thread_rank() == 0) base = atomicAdd(count, (int)active.size());
        kept[active.shfl(base, 0) + active.thread_rank()] = x[i];
    }
}

__global__ void matched_counts(int n, const int *x, int *counts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int key = i < n ? x[i] : -1;
    unsigned peers = __match_any_sync(ALL_LANES, key);
    if (key >= 0 && (threadIdx.x & 31) == __ffs(peers) - 1) atomicAdd(&counts[key], __popc(peers));
}

__global__ void lane_reductions(const unsigned *x, unsigned *y) {
    unsigned v = x[threadIdx.x];
    unsigned half = threadIdx.x & 16 ? 0xffff0000u : 0x0000ffffu;
    unsigned sum = __reduce_add_sync(ALL_LANES, v), most = __reduce_max_sync(half, v);
    unsigned parity = __reduce_xor_sync(ALL_LANES, v);
    y[threadIdx.x] = sum + 3 * most + 5 * parity;
}

__global__ void shuffle_widths(const int *x, int *y) {
    int v = x[threadIdx.x];
    int a = __shfl_sync(ALL_LANES, v, 3, 8), b = __shfl_up_sync(ALL_LANES, v, 2, 16);
    int c = __shfl_xor_sync(ALL_LANES, v, 1, 4), d = __shfl_down_sync(ALL_LANES, v, 5, 8);
    y[threadIdx.x] = a + 2 * b + 3 * c + 4 * d;
}

__global__ void block_votes(const int *x, int *y) {
    int v = x[blockIdx.x * blockDim.x + threadIdx.x];
    int positive = __syncthreads_count(v > 0);
    int any = __syncthreads_or(v == 7), all = __syncthreads_and(v < 90);
    if (threadIdx.x == 0) {
        y[3 * blockIdx.x] = positive;
        y[3 * blockIdx.x + 1] = any != 0;
        y[3 * blockIdx.x + 2] = all != 0;
    }
}

__global__ void exclusive_scan(int n, const int *x, int *y) {
    __shared__ int totals[32];
    int v = threadIdx.x < n ? x[threadIdx.x] : 0;
    int sum = block_scan(v, totals);
    if (threadIdx.x < n) y[threadIdx.x] = sum - v;
}

// One pass over all blocks. Each looks back until it finds a block that knows its whole prefix.
// `state`: 0 nothing, 1 the block's own sum, 2 the sum up to it.
__global__ void look_back_scan(int n, const int *x, int *y, volatile int *state, volatile int *own,
                               volatile int *prefix) {
    __shared__ int totals[32];
    __shared__ int before;
    int b = blockIdx.x, i = b * blockDim.x + threadIdx.x;
    int sum = block_scan(i < n ? x[i] : 0, totals);
    if (threadIdx.x == blockDim.x - 1) {
        int left = 0;
        if (b > 0) {
            own[b] = sum;
            __threadfence();
            state[b] = 1;
            for (int k = b - 1; k >= 0; k--) {
                int found;
                while ((found = state[k]) == 0) {}
                __threadfence();
                left += found == 2 ? prefix[k] : own[k];
                if (found == 2) break;
            }
        }
        prefix[b] = left + sum;
        __threadfence();
        state[b] = 2;
        before = left;
    }
    __syncthreads();
    if (i < n) y[i] = before + sum;
}

// Tiles of A and B are copied by cp.async, one tile ahead of those that are multiplied.
__global__ void pipelined_matmul(int n, const float *a, const float *b, float *c) {
    __shared__ __align__(16) float as[2][16][16];
    __shared__ __align__(16) float bs[2][16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16, column = blockIdx.x * 16;
    int t = y * 16 + x, r = (t % 64) / 4, q = t % 4 * 4;
    int tiles = n / 16;
    float sum = 0.0f;
    for (int k = 0; k <= tiles; k++) {
        if (k < tiles) {
            if (t < 64)
                __pipeline_memcpy_async(&as[k & 1][r][q], &a[(row + r) * n + k * 16 + q], 16);
            else if (t < 128)
                __pipeline_memcpy_async(&bs[k & 1][r][q], &b[(k * 16 + r) * n + column + q], 16);
        }
        __pipeline_commit();
        if (k > 0) {
            __pipeline_wait_prior(1);
            __syncthreads();
            for (int i = 0; i < 16; i++) sum += as[(k - 1) & 1][y][i] * bs[(k - 1) & 1][i][x];
            __syncthreads();
        }
    }
    c[(row + y) * n + column + x] = sum;
}

// A copy of a whole tile, for which a barrier in shared memory waits.
__global__ void copied_tile(const float *x, float *y) {
    __shared__ __align__(16) float tile[256];
    __shared__ cuda::barrier<cuda::thread_scope_block> ready;
    cg::thread_block block = cg::this_thread_block();
    if (threadIdx.x == 0) init(&ready, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(block, tile, x + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof(tile)), ready);
    ready.arrive_and_wait();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) y[blockIdx.x * 256 + i] = tile[255 - i];
}

// Two warps fill buffers, two others empty them; barriers in shared memory say who may go on.
__global__ void produced_and_consumed(int rounds, const int *x, int *y) {
    __shared__ int buffer[2][64];
    __shared__ cuda::barrier<cuda::thread_scope_block> filled[2], empty[2];
    if (threadIdx.x < 2) init(&filled[threadIdx.x], 128);
    else if (threadIdx.x < 4) init(&empty[threadIdx.x - 2], 128);
    __syncthreads();
    int i = threadIdx.x % 64;
    if (threadIdx.x < 64) {
        for (int k = 0; k < rounds; k++) {
            empty[k & 1].arrive_and_wait();
            buffer[k & 1][i] = x[k * 64 + i];
            (void)filled[k & 1].arrive();
        }
    } else {
        (void)empty[0].arrive();
        (void)empty[1].arrive();
        int sum = 0;
        for (int k = 0; k < rounds; k++) {
            filled[k & 1].arrive_and_wait();
            sum = 2 * sum + buffer[k & 1][63 - i];
            (void)empty[k & 1].arrive();
        }
        y[i] = sum;
    }
}

__global__ void tensor_matmul(int n, const __half *a, const __half *b, float *c) {
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    int row = blockIdx.y * 16, column = (blockIdx.x * 2 + threadIdx.y) * 16;
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(left, a + row * n + k, n);
        wmma::load_matrix_sync(right, b + k * n + column, n);
        wmma::mma_sync(sum, left, right, sum);
    }
    for (int i = 0; i < sum.num_elements; i++) sum.x[i] *= 0.5f;
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

__global__ void tensor_bf16(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c) {
    using namespace nvcuda;
    __shared__ float tile[16 * 16];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 1.0f);
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(tile, sum, 16, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) c[i] = fmaxf(tile[i], 0.0f);
}

// ldmatrix and mma.sync by hand, as tuned kernels do.
__global__ void loaded_matrices(const __half *a, const __half *b, float *c) {
    __shared__ __align__(16) __half as[16 * 16];
    __shared__ __align__(16) __half bs[8 * 16];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32) as[i] = a[i];
    for (int i = lane; i < 128; i += 32) bs[i] = b[i];
    __syncwarp();
    unsigned l0, l1, l2, l3, r0, r1;
    unsigned from = __cvta_generic_to_shared(&as[(lane % 16) * 16 + lane / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(l0), "=r"(l1), "=r"(l2), "=r"(l3)
                 : "r"(from));
    from = __cvta_generic_to_shared(&bs[(lane % 8) * 16 + lane / 8 % 2 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(from));
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3)
                 : "r"(l0), "r"(l1), "r"(l2), "r"(l3), "r"(r0), "r"(r1));
    float2 *rows = (float2 *)c;
    rows[lane / 4 * 4 + lane % 4] = make_float2(s0, s1);
    rows[(lane / 4 + 8) * 4 + lane % 4] = make_float2(s2, s3);
}

// The first block sends a message; all others wait for it.
__global__ void sent_message(int *flag, int *message, int *y) {
    cuda::atomic_ref<int, cuda::thread_scope_device> sign(*flag);
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            *message = 41;
            sign.store(1, cuda::memory_order_release);
        }
    } else if (threadIdx.x == 0) {
        while (sign.load(cuda::memory_order_acquire) == 0) __nanosleep(20);
        y[blockIdx.x] = *message + blockIdx.x;
    }
}

__global__ void atomic_summaries(int n, const int *x, int *sum, int *most, unsigned long long *bits) {
    cuda::atomic_ref<int, cuda::thread_scope_device> total(*sum), largest(*most);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        total.fetch_add(x[i], cuda::memory_order_relaxed);
        largest.fetch_max(x[i], cuda::memory_order_relaxed);
        atomicOr(bits, 1ull << (x[i] & 63));
    }
}

// Floats have no atomic maximum: compare and exchange until it holds.
__global__ void largest_float(int n, const float *x, float *most) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int *place = (int *)most, old = __float_as_int(-1e30f);
    while (__int_as_float(old) < x[i]) {
        int found = atomicCAS(place, old, __float_as_int(x[i]));
        if (found == old) break;
        old = found;
    }
}

__global__ void sorted_lanes(int *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, v = x[i];
    for (int size = 2; size <= 32; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            int other = __shfl_xor_sync(ALL_LANES, v, step);
            bool up = (lane & size) == 0, low = (lane & step) == 0;
            v = up == low ? min(v, other) : max(v, other);
        }
    x[i] = v;
}

// A sort by bits: for each of them, zeros go before ones, and else keep their order.
__global__ void radix_sorted(unsigned *x) {
    __shared__ unsigned data[128];
    __shared__ int totals[32];
    int t = threadIdx.x;
    unsigned v = x[t];
    for (int bit = 0; bit < 8; bit++) {
        int one = v >> bit & 1;
        int ones = block_scan(one, totals);
        int zeros = 128 - totals[blockDim.x / 32 - 1];
        data[one ? zeros + ones - 1 : t - ones] = v;
        __syncthreads();
        v = data[t];
        __syncthreads();
    }
    x[t] = v;
}

__global__ void __launch_bounds__(128, 2) reversed_pairs(int n, const float *x, const int *keys, float *y) {
    extern __shared__ __align__(16) unsigned char raw[];
    float *values = (float *)raw;
    int *places = (int *)(values + n);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        values[i] = x[i];
        places[i] = keys[i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[places[i]] = values[n - 1 - i];
}

// Rows of 32 floats, in which the column is mixed with the row so that banks differ.
__global__ void swizzled_transpose(int n, const float *x, float *y) {
    __shared__ float tile[32][32];
    int column = blockIdx.x * 32, row = blockIdx.y * 32;
    for (int r = threadIdx.y; r < 32; r += 4)
        tile[r][threadIdx.x ^ r] = x[(row + r) * n + column + threadIdx.x];
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += 4)
        y[(column + r) * n + row + threadIdx.x] = tile[threadIdx.x][r ^ threadIdx.x];
}
}
