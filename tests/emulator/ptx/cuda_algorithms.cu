// Kernels of many fields: linear algebra, images, graphs, random numbers, text, integers.
// `cuda_algorithms.py` has the arguments, and what each computes.

#include <cassert>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define ALL_LANES 0xffffffffu

static __device__ float lanes_sum(float v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(ALL_LANES, v, d);
    return v;
}

static __device__ float lanes_max(float v) {
    for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(ALL_LANES, v, d));
    return v;
}

// A shape knows its area; which one it is, is known when the kernel runs.
struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {}
};

struct Rectangle : Shape {
    float width, height;
    __device__ Rectangle(float w, float h) : width(w), height(h) {}
    __device__ float area() const override { return width * height; }
};

struct Disc : Shape {
    float radius;
    __device__ explicit Disc(float r) : radius(r) {}
    __device__ float area() const override { return 3.0f * radius * radius; }
};

typedef int (*Operation)(int, int);
static __device__ __noinline__ int added(int a, int b) { return a + b; }
static __device__ __noinline__ int subtracted(int a, int b) { return a - b; }
static __device__ __noinline__ int multiplied(int a, int b) { return a * b; }
static __device__ Operation operations[3] = {added, subtracted, multiplied};

struct Line {
    float slope, start;
    int count;
};

struct Square {
    __device__ float operator()(float v) const { return v * v; }
};

struct Clamped {
    float low, high;
    __device__ float operator()(float v) const { return fminf(fmaxf(v, low), high); }
};

template <typename First, typename Second>
static __device__ float composed(First first, Second second, float v) {
    return second(first(v));
}

static __device__ int sum_of_tree(const int *left, const int *right, const int *value, int node) {
    if (node < 0) return 0;
    return value[node] + sum_of_tree(left, right, value, left[node]) + sum_of_tree(left, right, value, right[node]);
}

static __device__ int root_of(volatile int *parent, int node) {
    while (parent[node] != node) node = parent[node];
    return node;
}

extern "C" {

// One warp for each row; maximum and sum in one pass.
__global__ void online_softmax(int columns, const float *x, float *y) {
    const float *row = x + blockIdx.x * columns;
    float most = -1e30f, sum = 0.0f;
    for (int c = threadIdx.x; c < columns; c += 32) {
        float larger = fmaxf(most, row[c]);
        sum = sum * __expf(most - larger) + __expf(row[c] - larger);
        most = larger;
    }
    float all = lanes_max(most);
    sum = lanes_sum(sum * __expf(most - all));
    for (int c = threadIdx.x; c < columns; c += 32) y[blockIdx.x * columns + c] = __expf(row[c] - all) / sum;
}

__global__ void layer_norm(int columns, float epsilon, const float *x, const float *gain, const float *bias, float *y) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    const float *from = x + row * columns;
    float sum = 0.0f, squares = 0.0f;
    for (int c = threadIdx.x; c < columns; c += 32) sum += from[c];
    float mean = lanes_sum(sum) / columns;
    for (int c = threadIdx.x; c < columns; c += 32) squares += (from[c] - mean) * (from[c] - mean);
    float scale = rsqrtf(lanes_sum(squares) / columns + epsilon);
    for (int c = threadIdx.x; c < columns; c += 32)
        y[row * columns + c] = (from[c] - mean) * scale * gain[c] + bias[c];
}

__global__ void matrix_vector(int columns, const float4 *a, const float4 *x, float *y) {
    __shared__ float parts[4];
    const float4 *row = a + blockIdx.x * columns / 4;
    float sum = 0.0f;
    for (int c = threadIdx.x; c < columns / 4; c += blockDim.x) {
        float4 p = __ldg(row + c), q = __ldg(x + c);
        sum += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
    }
    sum = lanes_sum(sum);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = parts[0] + parts[1] + parts[2] + parts[3];
}

// Each of 64 threads computes 4 x 4 elements of a tile of 32 x 32.
__global__ void blocked_matmul(int n, const float *a, const float *b, float *c) {
    __shared__ float as[8][32], bs[8][32];
    int x = threadIdx.x % 8 * 4, y = threadIdx.x / 8 * 4, row = blockIdx.y * 32, column = blockIdx.x * 32;
    float sum[4][4] = {};
    for (int k = 0; k < n; k += 8) {
        for (int i = threadIdx.x; i < 256; i += 64) {
            as[i % 8][i / 8] = a[(row + i / 8) * n + k + i % 8];
            bs[i / 32][i % 32] = b[(k + i / 32) * n + column + i % 32];
        }
        __syncthreads();
        for (int i = 0; i < 8; i++) {
            float4 left = *(const float4 *)&as[i][y], right = *(const float4 *)&bs[i][x];
            float l[4] = {left.x, left.y, left.z, left.w}, r[4] = {right.x, right.y, right.z, right.w};
            for (int p = 0; p < 4; p++)
                for (int q = 0; q < 4; q++) sum[p][q] += l[p] * r[q];
        }
        __syncthreads();
    }
    for (int p = 0; p < 4; p++)
        *(float4 *)&c[(row + y + p) * n + column + x] = make_float4(sum[p][0], sum[p][1], sum[p][2], sum[p][3]);
}

__global__ void int8_matmul(int n, const int *a, const int *b, int *c) {
    int row = blockIdx.x, column = threadIdx.x, sum = 0;
    for (int k = 0; k < n / 4; k++) 
        asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a[row * n / 4 + k]), "r"(b[column * n / 4 + k]));
    c[row * n + column] = sum;
}

__global__ void half_pairs(int n, __half2 a, const __half2 *x, __half2 *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __hmin2(__hfma2(a, x[i], y[i]), __float2half2_rn(1.0f));
}

__global__ void bf16_products(int n, const __nv_bfloat16 *x, const __nv_bfloat16 *y, __nv_bfloat16 *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = __float2bfloat16(__bfloat162float(x[i]) * __bfloat162float(y[i]) + 0.25f);
}

// A tile of 16 x 8 with a border of one element.
__global__ void diffusion_2d(int rows, int columns, const float *x, float *y) {
    __shared__ float tile[10][18];
    int c0 = blockIdx.x * 16 - 1, r0 = blockIdx.y * 8 - 1;
    for (int i = threadIdx.y * 16 + threadIdx.x; i < 180; i += 128) {
        int r = min(max(r0 + i / 18, 0), rows - 1), c = min(max(c0 + i % 18, 0), columns - 1);
        tile[i / 18][i % 18] = x[r * columns + c];
    }
    __syncthreads();
    int r = r0 + 1 + threadIdx.y, c = c0 + 1 + threadIdx.x, ty = threadIdx.y + 1, tx = threadIdx.x + 1;
    if (r < rows && c < columns)
        y[r * columns + c] = 0.5f * tile[ty][tx] + 0.125f * (tile[ty - 1][tx] + tile[ty + 1][tx] + tile[ty][tx - 1] + tile[ty][tx + 1]);
}

// Planes are swept along z; the planes below and above are held in registers.
__global__ void laplace_3d(int size, const float *x, float *y) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c < 1 || r < 1 || c >= size - 1 || r >= size - 1) return;
    int plane = size * size, at = r * size + c;
    float below = x[at], here = x[at + plane];
    for (int z = 1; z < size - 1; z++) {
        at += plane;
        float above = x[at + plane];
        y[at] = below + above + x[at - 1] + x[at + 1] + x[at - size] + x[at + size] - 6.0f * here;
        below = here;
        here = above;
    }
}

__constant__ float kernel_3x3[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};

__global__ void blurred(int rows, int columns, const unsigned char *x, unsigned char *y) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= rows || c >= columns) return;
    float sum = 0.0f;
#pragma unroll
    for (int i = -1; i <= 1; i++)
#pragma unroll
        for (int j = -1; j <= 1; j++) {
            int p = r + i, q = c + j;
            if (p >= 0 && p < rows && q >= 0 && q < columns) sum += kernel_3x3[3 * i + j + 4] * x[p * columns + q];
        }
    y[r * columns + c] = (unsigned char)(sum * 0.0625f);
}

__global__ void sparse_rows(int rows, const int *begins, const int *columns, const double *values, const double *x, double *y) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double sum = 0;
    for (int k = begins[row]; k < begins[row + 1]; k++) sum += values[k] * x[columns[k]];
    y[row] = sum;
}

__global__ void sparse_by_warps(int rows, const int *begins, const int *columns, const float *values, const float *x, float *y) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = begins[row] + lane; k < begins[row + 1]; k += 32) sum += values[k] * x[columns[k]];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(ALL_LANES, sum, d);
    if (lane == 0) y[row] = sum;
}

__global__ void search_step(int level, const int *begins, const int *targets, int *levels, const int *front, int size, int *next, int *count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    int node = front[i];
    for (int k = begins[node]; k < begins[node + 1]; k++)
        if (atomicCAS(&levels[targets[k]], -1, level + 1) == -1) next[atomicAdd(count, 1)] = targets[k];
}

// Roots are hung below smaller ones until both ends of each edge have the same root.
__global__ void connected(int edges, const int *from, const int *to, int *parent) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= edges) return;
    int a = root_of(parent, from[i]), b = root_of(parent, to[i]);
    while (a != b) {
        if (a < b) {
            int swapped = a;
            a = b;
            b = swapped;
        }
        int found = atomicCAS(&parent[a], a, b);
        if (found == a) break;
        a = root_of(parent, found);
        b = root_of(parent, b);
    }
}

__global__ void mandelbrot(int width, int height, int limit, int *counts) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= width || r >= height) return;
    float p = -2.0f + 0.0625f * c, q = -1.25f + 0.125f * r, x = 0.0f, y = 0.0f;
    int k = 0;
    while (k < limit && __fadd_rn(__fmul_rn(x, x), __fmul_rn(y, y)) < 4.0f) {
        float next = __fadd_rn(__fsub_rn(__fmul_rn(x, x), __fmul_rn(y, y)), p);
        y = __fadd_rn(__fmul_rn(2.0f * x, y), q);
        x = next;
        k++;
    }
    counts[r * width + c] = k;
}

__global__ void pulled_bodies(int n, const float4 *bodies, float3 *pull) {
    __shared__ float4 tile[32];
    int i = blockIdx.x * 32 + threadIdx.x;
    float4 own = bodies[i];
    float3 sum = make_float3(0, 0, 0);
    for (int k = 0; k < n; k += 32) {
        tile[threadIdx.x] = bodies[k + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 32; j++) {
            float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f), weight = tile[j].w * inverse * inverse * inverse;
            sum.x += dx * weight;
            sum.y += dy * weight;
            sum.z += dz * weight;
        }
        __syncthreads();
    }
    pull[i] = sum;
}

__global__ void points_in_circle(int rounds, unsigned seed, unsigned *inside) {
    unsigned state = seed + 2654435761u * (blockIdx.x * blockDim.x + threadIdx.x + 1), found = 0;
    for (int k = 0; k < rounds; k++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        unsigned x = state & 0xffff, y = state >> 16;
        found += x * x / 2 + y * y / 2 < 1u << 31;
    }
    atomicAdd(inside, found);
}

// Elimination with the largest pivot, in local memory.
__global__ void determinants(int n, const double *x, double *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double a[4][4], product = 1;
    for (int k = 0; k < 16; k++) a[k / 4][k % 4] = x[i * 16 + k];
    for (int k = 0; k < 4; k++) {
        int best = k;
        for (int r = k + 1; r < 4; r++)
            if (fabs(a[r][k]) > fabs(a[best][k])) best = r;
        if (best != k) {
            product = -product;
            for (int c = 0; c < 4; c++) {
                double kept = a[k][c];
                a[k][c] = a[best][c];
                a[best][c] = kept;
            }
        }
        product *= a[k][k];
        for (int r = k + 1; r < 4; r++) {
            double factor = a[r][k] / a[k][k];
            for (int c = k; c < 4; c++) a[r][c] -= factor * a[k][c];
        }
    }
    y[i] = product;
}

__global__ void sums_of_trees(const int *left, const int *right, const int *value, int *y) {
    y[threadIdx.x] = sum_of_tree(left, right, value, threadIdx.x);
}

__global__ void chosen_operations(const int *which, const int *a, const int *b, int *c) {
    int i = threadIdx.x;
    c[i] = operations[which[i]](a[i], b[i]);
}

__global__ void areas(const float *sizes, float *y) {
    Rectangle rectangle(sizes[threadIdx.x], 2.0f);
    Disc disc(sizes[threadIdx.x]);
    const Shape *shape = threadIdx.x % 3 ? (const Shape *)&rectangle : (const Shape *)&disc;
    y[threadIdx.x] = shape->area();
}

__global__ void passed_structs(Line line, const float *x, float *y) {
    int i = threadIdx.x;
    if (i < line.count) y[i] = composed(Square(), Clamped{line.start, 4.0f}, line.slope * x[i] + line.start);
}

__global__ void wide_integers(int n, const unsigned long long *a, const unsigned long long *b, unsigned long long *high, unsigned long long *sums) {
    int i = threadIdx.x;
    if (i >= n) return;
    high[i] = __umul64hi(a[i], b[i]);
    unsigned __int128 sum = (unsigned __int128)a[i] * b[i] + a[i];
    sum += (unsigned __int128)b[i] << 64;
    sums[2 * i] = (unsigned long long)sum;
    sums[2 * i + 1] = (unsigned long long)(sum >> 64);
}

__global__ void found_words(int length, const char *text, int size, const char *word, int *places, int *count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + size > length) return;
    int k = 0;
    while (k < size && text[i + k] == word[k]) k++;
    if (k == size) places[atomicAdd(count, 1)] = i;
}

__global__ void checksums(int bytes, const unsigned char *x, unsigned *y) {
    __shared__ unsigned table[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        unsigned entry = i;
        for (int k = 0; k < 8; k++) entry = entry & 1 ? entry >> 1 ^ 0xedb88320u : entry >> 1;
        table[i] = entry;
    }
    __syncthreads();
    unsigned sum = ~0u;
    for (int k = 0; k < bytes; k++) sum = table[(sum ^ x[threadIdx.x * bytes + k]) & 255] ^ sum >> 8;
    y[threadIdx.x] = ~sum;
}

// Each word is 32 cells; the sums of eight neighbours are counted bit by bit.
__global__ void game_of_life(int rows, const unsigned *x, unsigned *y) {
    int r = threadIdx.x;
    if (r >= rows) return;
    unsigned near[3] = {x[(r + rows - 1) % rows], x[r], x[(r + 1) % rows]}, ones = 0, twos = 0, fours = 0;
    for (int k = 0; k < 3; k++)
        for (int s = -1; s <= 1; s++) {
            if (k == 1 && s == 0) continue;
            unsigned v = s < 0 ? __funnelshift_l(near[k], near[k], 1) : s > 0 ? __funnelshift_r(near[k], near[k], 1) : near[k];
            unsigned carry = ones & v;
            ones ^= v;
            unsigned more = twos & carry;
            twos ^= carry;
            fours |= more;
        }
    y[r] = twos & ~fours & (ones | near[1]);
}

__global__ void nearest_codes(int n, unsigned long long code, const unsigned long long *codes, unsigned *best) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMin(best, (unsigned)__popcll(code ^ codes[i]) << 16 | i);
}

__global__ void quantised(int n, float scale, const float *x, signed char *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (signed char)max(-128, min(127, __float2int_rn(x[i] * scale)));
}

__global__ void hashed(int n, const int *keys, int *table, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned place = (unsigned)keys[i] * 2654435769u >> 26;
    while (true) {
        int found = atomicCAS(&table[place], -1, keys[i]);
        if (found == -1 || found == keys[i]) return;
        place = (place + 1) & (size - 1);
    }
}

__global__ void option_prices(int n, const double *spots, const double *strikes, double *prices) {
    int i = threadIdx.x;
    if (i >= n) return;
    double d = log(spots[i] / strikes[i]) / 0.3 + 0.25;
    prices[i] = spots[i] * normcdf(d) - strikes[i] * exp(-0.02) * (0.5 * erfc(-(d - 0.3) * 0.7071067811865476));
}

// A transform of 64 numbers, its steps in shared memory.
__global__ void fourier(const float2 *x, float2 *y) {
    __shared__ float2 data[64];
    int t = threadIdx.x;
    data[__brev(t) >> 26] = x[t];
    data[__brev(t + 32) >> 26] = x[t + 32];
    __syncthreads();
    for (int half = 1; half < 64; half *= 2) {
        int low = t / half * 2 * half + t % half;
        float s, c;
        sincospif(-(float)(t % half) / half, &s, &c);
        float2 a = data[low], b = data[low + half];
        float2 turned = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
        data[low] = make_float2(a.x + turned.x, a.y + turned.y);
        data[low + half] = make_float2(a.x - turned.x, a.y - turned.y);
        __syncthreads();
    }
    y[t] = data[t];
    y[t + 32] = data[t + 32];
}

__global__ void checked_and_printed(int n, const int *x, int *y) {
    long long begin = clock64();
    assert(n <= 64);
    if (threadIdx.x < n) {
        assert(x[threadIdx.x] >= 0);
        y[threadIdx.x] = x[threadIdx.x] * 2;
        if (x[threadIdx.x] == 5) printf("thread %d has %d, %.2f %s\n", threadIdx.x, 5, 2.5, "in all");
    }
    assert(clock64() >= begin);
}

struct Node {
    int value;
    Node *next;
};

// A list of each thread, on the heap.
__global__ void listed(int n, const int *x, int *y) {
    Node *first = nullptr;
    for (int k = 0; k < n; k++) {
        Node *node = (Node *)malloc(sizeof(Node));
        node->value = x[threadIdx.x * n + k];
        node->next = first;
        first = node;
    }
    int sum = 0;
    while (first) {
        sum = sum * 3 + first->value;
        Node *next = first->next;
        free(first);
        first = next;
    }
    y[threadIdx.x] = sum;
}
}
