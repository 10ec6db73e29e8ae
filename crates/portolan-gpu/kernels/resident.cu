// Fits that never leave the chip: one block of threads owns an emitter, a cluster of blocks a map,
// and all iterations run inside one launch. Grids of 49 to 64 cells a side, the paper's decoder
// (four blocks, six channels, 3 x 3 kernels, bilinear upsampling, reflected borders), up to eight
// emitters and 64 bands. Everything else is `layered.cu`'s.
//
// Names: y is a convolution's output, v the rectified image after upsampling less the mean of the
// iteration before (`shift`, so that sums of squares stay small), x = A v + B what normalisation
// makes of it. A and B are folded into the next convolution's weights, so x is never stored. An
// interval (i, j) is the square between the centres of pixels i, i + 1 and j, j + 1: upsampling
// puts four pixels into it, by those four values alone. The last interval of a row joins the
// pixels at the two borders, each of which stands for itself.
//
// Sums run in a fixed order: the same start gives the same bytes.
#include "common.cuh"

using namespace portolan;

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int CHANNELS = 6;
constexpr int BANDS = 64;
// Weights of one output channel of blocks 1 to 3: two halves of three input channels, each padded
// so that it begins at 16 bytes.
constexpr int HALF_ROW = 28;
constexpr int ROW = 2 * HALF_ROW;
constexpr int CONV = 56;                       // block 1; block 0 is at 0
constexpr int CONV_LEN = CHANNELS * ROW;
constexpr int AFFINE = CONV + 3 * CONV_LEN;    // scales and offsets, 12 a block
constexpr int OUT = AFFINE + 4 * 2 * CHANNELS;
constexpr int PARAMS = 1120;
constexpr int LATENT = 16;
// What a block keeps between launches: parameters, latent and PSD with two moments each, shifts.
constexpr int STATE_SHIFT = 3 * (PARAMS + LATENT + BANDS);
constexpr int STATE = STATE_SHIFT + 32;

struct MapInfo {
    int first_slot;      // cells with sensors
    int slots;
    int first_edge;
    int edges;
    float offset;
    float sigma;
};

struct FitArgs {
    float* state;
    float* result;           // by map: parameters, then latent and PSD of every emitter
    double* trace;
    Standing* standing;
    const float* rates;      // by iteration: size and scale for network, size for PSDs
    const MapInfo* maps;
    const int* slot_place;   // in planes of intervals
    const int* slot_sensor;  // first sensor; one more than slots
    const float* targets;    // sensors x bands; imitation: emitters x cells
    const unsigned char* levels;
    const float* edge;
    double tolerance;
    float penalty_network;
    float penalty_latent;
    float penalty_psd;
    int iterations;
    int from;
    int to;
    int trace_stride;
    int bands;
    int kind;
    int exponential;
    int per_emitter;         // normalisation of each emitter by itself
    int both;                // ending: iterations and calm, not either
    int keeps_best;          // the iterate of least loss is the result
    int rows;
    int cols;
};

// Shared memory, in floats.
template <int RM>
struct Room {
    static constexpr int Y3 = 0;
    static constexpr int V3 = Y3 + CHANNELS * 1024;
    static constexpr int Y2 = V3 + CHANNELS * 1024;
    static constexpr int V2 = Y2 + CHANNELS * 256;
    static constexpr int Y1 = V2 + CHANNELS * 256;
    static constexpr int V1 = Y1 + CHANNELS * 64;
    static constexpr int Y0 = V1 + CHANNELS * 64;
    static constexpr int PLANES = Y0 + CHANNELS * 16;   // SLF, then its gradient, by interval
    static constexpr int P = PLANES + 4096;
    static constexpr int M = P + PARAMS;
    static constexpr int V = M + PARAMS;
    static constexpr int G = V + PARAMS;
    static constexpr int FOLDED = G + PARAMS;           // weights times A; scratch on the way back
    static constexpr int FOLDED_LEN = 1024;
    static constexpr int Z = FOLDED + FOLDED_LEN;       // latent and its moments
    static constexpr int C = Z + 3 * LATENT;            // own PSD and its moments
    static constexpr int ALL_C = C + 3 * BANDS;
    static constexpr int PSD_SUMS = ALL_C + RM * BANDS; // read by the other blocks
    // Written by all blocks: sums of each, 4 forward, 4 back, then the losses.
    static constexpr int SUMS = PSD_SUMS + RM * BANDS;
    static constexpr int SHIFT = SUMS + 9 * RM * 16;
    static constexpr int A = SHIFT + 24;
    static constexpr int B = A + 24;
    static constexpr int MEAN = B + 24;
    static constexpr int INVERSE = MEAN + 24;
    static constexpr int BACK = INVERSE + 24;           // alpha, beta, scale: 6 each
    static constexpr int BIAS = BACK + 20;
    static constexpr int DY_SUMS = BIAS + 8;
    static constexpr int TAP_SUMS = DY_SUMS + 8;
    static constexpr int PART = TAP_SUMS + 36;
    static constexpr int LEN = PART + 256;
};

// Where tap 0 of input channel ci lies in a row of weights.
__device__ __forceinline__ int taps_of(int ci) { return ci / 3 * HALF_ROW + ci % 3 * 9; }

template <int LEN>
__device__ __forceinline__ void load_vectors(const float* from, float (&to)[LEN]) {
    const float4* vectors = reinterpret_cast<const float4*>(from);
#pragma unroll
    for (int q = 0; q < LEN / 4; ++q) {
        const float4 four = vectors[q];
        to[4 * q] = four.x;
        to[4 * q + 1] = four.y;
        to[4 * q + 2] = four.z;
        to[4 * q + 3] = four.w;
    }
}

__device__ __forceinline__ int mirrored(int at, int n) {
    return at < 0 ? -at : (at >= n ? 2 * n - 2 - at : at);
}

// The four pixels of an interval whose corners are p (near row) and q (far row), columns 0 and 1.
// `fr` and `fc` are the far share: 1/4, at the wrapped border 0.
__device__ __forceinline__ void interpolate(
    float p0, float p1, float q0, float q1, float fr, float fc, float (&u)[4]) {
    const float d0 = q0 - p0, d1 = q1 - p1;
    const float a0 = fmaf(fr, d0, p0), a1 = fmaf(fr, d1, p1);
    const float b0 = fmaf(-fr, d0, q0), b1 = fmaf(-fr, d1, q1);
    const float da = a1 - a0, db = b1 - b0;
    u[0] = fmaf(fc, da, a0);
    u[1] = fmaf(-fc, da, a1);
    u[2] = fmaf(fc, db, b0);
    u[3] = fmaf(-fc, db, b1);
}

// y = convolution of v with folded weights, plus a bias. A thread makes PX pixels of a column in
// CO channels; threads beyond the image idle.
template <int N, int PX, int CO>
__device__ __forceinline__ void convolve(
    const float* v, const float* folded, const float* bias, float* y) {
    constexpr int COLUMNS = N * (N / PX);
    const int id = threadIdx.x;
    if (id >= COLUMNS * (CHANNELS / CO)) return;
    const int co = id / COLUMNS * CO;
    const int j = id % N, i = id % COLUMNS / N * PX;
    const int left = mirrored(j - 1, N), right = mirrored(j + 1, N);
    float sum[PX][CO];
#pragma unroll
    for (int p = 0; p < PX; ++p)
#pragma unroll
        for (int c = 0; c < CO; ++c) sum[p][c] = bias[co + c];
#pragma unroll 1
    for (int ci = 0; ci < CHANNELS; ++ci) {
        // (half of the output channels, tap, channel).
        float w[CO == 6 ? ROW : CO == 3 ? HALF_ROW : 9 * CO];
        if constexpr (CO >= 3) {
            load_vectors(folded + ci * ROW + co / 3 * HALF_ROW, w);
        } else {
#pragma unroll
            for (int k = 0; k < 9; ++k)
#pragma unroll
                for (int c = 0; c < CO; ++c)
                    w[k * CO + c] = folded[ci * ROW + (co + c) / 3 * HALF_ROW + k * 3 + (co + c) % 3];
        }
        const float* image = v + ci * N * N;
#pragma unroll
        for (int r = 0; r < PX + 2; ++r) {
            const float* row = image + mirrored(i + r - 1, N) * N;
            const float x[3] = {row[left], row[j], row[right]};
#pragma unroll
            for (int kh = 0; kh < 3; ++kh) {
                const int p = r - kh;
                if (p < 0 || p >= PX) continue;
#pragma unroll
                for (int kw = 0; kw < 3; ++kw)
#pragma unroll
                    for (int c = 0; c < CO; ++c)
                        sum[p][c] = fmaf(
                            x[kw],
                            CO >= 3 ? w[c / 3 * HALF_ROW + (kh * 3 + kw) * 3 + c % 3]
                                    : w[(kh * 3 + kw) * CO + c],
                            sum[p][c]);
            }
        }
    }
#pragma unroll
    for (int p = 0; p < PX; ++p)
#pragma unroll
        for (int c = 0; c < CO; ++c) y[((co + c) * N + i + p) * N + j] = sum[p][c];
}

// The gradient in a convolution's input, for PX pixels and CI channels of a thread. What a
// reflected border would receive goes to the pixel it mirrors: the second from the border.
template <int N, int PX, int CI>
__device__ __forceinline__ void convolve_back(
    const float* dy, const float* weights, int i, int j, int ci, float (&dx)[PX][CI]) {
#pragma unroll
    for (int p = 0; p < PX; ++p)
#pragma unroll
        for (int c = 0; c < CI; ++c) dx[p][c] = 0.0f;
#pragma unroll 1
    for (int co = 0; co < CHANNELS; ++co) {
        float w[CI == 6 ? ROW : CI == 3 ? HALF_ROW : 9 * CI];
        if constexpr (CI >= 3) {
            load_vectors(weights + co * ROW + ci / 3 * HALF_ROW, w);
        } else {
#pragma unroll
            for (int c = 0; c < CI; ++c)
#pragma unroll
                for (int k = 0; k < 9; ++k) w[c * 9 + k] = weights[co * ROW + taps_of(ci + c) + k];
        }
        // Where channel c's tap 0 lies in w.
        const auto taps = [](int c) { return CI == 6 ? c / 3 * HALF_ROW + c % 3 * 9 : c * 9; };
        const float* image = dy + co * N * N;
#pragma unroll
        for (int r = 0; r < PX + 2; ++r) {
            const int at = i + r - 1;
            const bool inside = at >= 0 && at < N;
            const float* row = image + at * N;
            const float left = inside && j > 0 ? row[j - 1] : 0.0f;
            const float middle = inside ? row[j] : 0.0f;
            const float right = inside && j < N - 1 ? row[j + 1] : 0.0f;
            // Tap 0 reads to the right, tap 2 to the left.
            const float x[3] = {j == 1 ? right + left : right, middle,
                                j == N - 2 ? left + right : left};
#pragma unroll
            for (int kh = 0; kh < 3; ++kh) {
                const int p = r + kh - 2;
                if (p < 0 || p >= PX) continue;
#pragma unroll
                for (int kw = 0; kw < 3; ++kw)
#pragma unroll
                    for (int c = 0; c < CI; ++c)
                        dx[p][c] = fmaf(x[kw], w[taps(c) + kh * 3 + kw], dx[p][c]);
            }
            // Row 0 folds into row 1 by tap 0, row N - 1 into row N - 2 by tap 2.
            constexpr int UPPER = PX > 1 ? 1 : 0, LOWER = PX > 1 ? PX - 2 : 0;
            if (r == UPPER && i + UPPER == 1) {
#pragma unroll
                for (int kw = 0; kw < 3; ++kw)
#pragma unroll
                    for (int c = 0; c < CI; ++c)
                        dx[UPPER][c] = fmaf(x[kw], w[taps(c) + kw], dx[UPPER][c]);
            }
            if (r == LOWER + 2 && i + LOWER == N - 2) {
#pragma unroll
                for (int kw = 0; kw < 3; ++kw)
#pragma unroll
                    for (int c = 0; c < CI; ++c)
                        dx[LOWER][c] = fmaf(x[kw], w[taps(c) + 6 + kw], dx[LOWER][c]);
            }
        }
    }
}

// Sum of dy v over the pixels for every weight, in two parts for each input channel: 24 tasks of
// whole rows, three to a warp, flushed where the input channel changes.
template <int N>
__device__ __forceinline__ void weight_sums(const float* dy, const float* v, float* parts) {
    constexpr int STEPS = N * N / 32;              // warp-wide steps over an image
    constexpr int TASKS = STEPS < 4 ? 2 : 4;       // for each input channel
    constexpr int PER_TASK = STEPS / TASKS;
    constexpr int PER_WARP = TASKS == 4 ? 3 : 2;
    constexpr int ROWS = 32 / N;                   // rows of a step; 1 where a warp spans a row
    const int warp = threadIdx.x / 32, lane = lane_id();
    const int j = lane % N;
    const int left = mirrored(j - 1, N), right = mirrored(j + 1, N);
    if (warp * PER_WARP >= CHANNELS * TASKS) return;
    float sums[54];
#pragma unroll
    for (int q = 0; q < 54; ++q) sums[q] = 0.0f;
#pragma unroll 1
    for (int t = 0; t < PER_WARP; ++t) {
        const int task = warp * PER_WARP + t;
        const int ci = task / TASKS;
        const float* image = v + ci * N * N;
        const int first = task % TASKS * PER_TASK * ROWS + lane / N;
        float window[3][3];
        if constexpr (ROWS == 1) {
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const float* row = image + mirrored(first + r - 1, N) * N;
                window[r + 1][0] = row[left];
                window[r + 1][1] = row[j];
                window[r + 1][2] = row[right];
            }
        }
#pragma unroll(2)
        for (int s = 0; s < PER_TASK; ++s) {
            const int i = first + s * ROWS;
#pragma unroll
            for (int r = 0; r < 3; ++r) {
                if (ROWS == 1 && r < 2) {
#pragma unroll
                    for (int k = 0; k < 3; ++k) window[r][k] = window[r + 1][k];
                } else {
                    const float* row = image + mirrored(i + r - 1, N) * N;
                    window[r][0] = row[left];
                    window[r][1] = row[j];
                    window[r][2] = row[right];
                }
            }
#pragma unroll
            for (int co = 0; co < CHANNELS; ++co) {
                const float d = dy[(co * N + i) * N + j];
#pragma unroll
                for (int k = 0; k < 9; ++k)
                    sums[co * 9 + k] = fmaf(d, window[k / 3][k % 3], sums[co * 9 + k]);
            }
        }
        const int next = (task + 1) / TASKS;
        if (t + 1 == PER_WARP || next != ci) {
            // The part that ends an input channel is its second.
            const int part = task % TASKS == TASKS - 1 ? 1 : 0;
            warp_sums<54>(sums, parts + (ci * 2 + part) * 54);
            if constexpr (TASKS == 2) {
                for (int q = lane; q < 54; q += 32) parts[ci * 108 + q] = 0.0f;
            }
#pragma unroll
            for (int q = 0; q < 54; ++q) sums[q] = 0.0f;
        }
    }
}

// v of a small block from its y, with sums of v and v^2 for every 16 intervals.
template <int N>
__device__ __forceinline__ void upsample(const float* y, const float* shift, float* v, float* part) {
#pragma unroll 1
    for (int id = threadIdx.x; id < CHANNELS * N * N; id += THREADS) {
        const int c = id / (N * N), i = id / N % N, j = id % N;
        const int below = i + 1 == N ? 0 : i + 1, beside = j + 1 == N ? 0 : j + 1;
        const float* image = y + c * N * N;
        float u[4];
        interpolate(image[i * N + j], image[i * N + beside], image[below * N + j],
                    image[below * N + beside], below ? 0.25f : 0.0f, beside ? 0.25f : 0.0f, u);
        const float floor = -shift[c];
        float sums[2] = {0.0f, 0.0f};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            u[k] = fmaxf(u[k], floor);
            sums[0] += u[k];
            sums[1] = fmaf(u[k], u[k], sums[1]);
        }
        const int upper = 2 * i + 1, lower = below ? 2 * i + 2 : 0;
        const int west = 2 * j + 1, east = beside ? 2 * j + 2 : 0;
        float* to = v + c * 4 * N * N;
        to[upper * 2 * N + west] = u[0];
        to[upper * 2 * N + east] = u[1];
        to[lower * 2 * N + west] = u[2];
        to[lower * 2 * N + east] = u[3];
#pragma unroll
        for (int mask = 8; mask > 0; mask /= 2) {
            sums[0] += shuffle_xor(sums[0], mask);
            sums[1] += shuffle_xor(sums[1], mask);
        }
        if (id % 16 == 0) {
            part[id / 16 * 2] = sums[0];
            part[id / 16 * 2 + 1] = sums[1];
        }
    }
    __syncthreads();
}

// The gradient in y from that in v, for the small blocks: a pixel gathers from the 4 x 4 pixels
// that it lent to. Sums of dy for every 16 pixels.
template <int N>
__device__ __forceinline__ void upsample_back(const float* dv, float* dy, float* part) {
#pragma unroll 1
    for (int id = threadIdx.x; id < CHANNELS * N * N; id += THREADS) {
        const int c = id / (N * N), i = id / N % N, j = id % N;
        const float* image = dv + c * 4 * N * N;
        const float wi[4] = {i ? 0.25f : 0.0f, i ? 0.75f : 1.0f, i + 1 < N ? 0.75f : 1.0f,
                             i + 1 < N ? 0.25f : 0.0f};
        const float wj[4] = {j ? 0.25f : 0.0f, j ? 0.75f : 1.0f, j + 1 < N ? 0.75f : 1.0f,
                             j + 1 < N ? 0.25f : 0.0f};
        float sum = 0.0f;
#pragma unroll
        for (int a = 0; a < 4; ++a) {
            const int r = min(max(2 * i + a - 1, 0), 2 * N - 1);
            float along = 0.0f;
#pragma unroll
            for (int b = 0; b < 4; ++b) {
                const int s = min(max(2 * j + b - 1, 0), 2 * N - 1);
                along = fmaf(wj[b], image[r * 2 * N + s], along);
            }
            sum = fmaf(wi[a], along, sum);
        }
        dy[id] = sum;
#pragma unroll
        for (int mask = 8; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
        if (id % 16 == 0) part[id / 16] = sum;
    }
    __syncthreads();
}

// The paper's fit, or the imitation of SLFs, for one map by a cluster.
template <int RM, bool IMITATION>
__device__ __forceinline__ void descend(const FitArgs& args) {
    using At = Room<RM>;
    SHARED_FLOATS(room);
    const int tid = threadIdx.x, warp = tid / 32, lane = lane_id();
    const int rank = cluster_rank(), emitters = gridDim.x, map = blockIdx.y;
    const int groups = args.per_emitter ? 1 : emitters;
    const MapInfo info = args.maps[map];
    float* const state = args.state + (static_cast<size_t>(map) * emitters + rank) * STATE;
    Standing* const standing = args.standing + map;
    double* const trace = args.trace + static_cast<size_t>(map) * args.trace_stride;
    float* const planes = room + At::PLANES;
    float* const p = room + At::P;
    float* const grad = room + At::G;
    float* const part = room + At::PART;
    float* const dy_part = part + 128;
    float* const shift = room + At::SHIFT;

    Standing now = *standing;
    // All blocks of the cluster see the same, so none waits for one that has left.
    if (now.over) return;
    float* const result =
        args.result + static_cast<size_t>(map) * (PARAMS + emitters * (LATENT + BANDS));
    float* const own_result = result + PARAMS + rank * (LATENT + BANDS);
    if (args.from == 0) {
        // The start lies where the result will.
        for (int k = tid; k < PARAMS; k += THREADS) {
            p[k] = result[k];
            room[At::M + k] = room[At::V + k] = 0.0f;
        }
        for (int k = tid; k < 3 * LATENT; k += THREADS) {
            room[At::Z + k] = k < LATENT ? own_result[k] : 0.0f;
        }
        for (int k = tid; k < 3 * BANDS; k += THREADS) {
            room[At::C + k] = k < BANDS ? own_result[LATENT + k] : 0.0f;
        }
        for (int k = tid; k < 24; k += THREADS) shift[k] = 0.0f;
    } else {
        for (int k = tid; k < PARAMS; k += THREADS) {
            p[k] = state[k];
            room[At::M + k] = state[PARAMS + k];
            room[At::V + k] = state[2 * PARAMS + k];
        }
        for (int k = tid; k < 3 * LATENT; k += THREADS) room[At::Z + k] = state[3 * PARAMS + k];
        for (int k = tid; k < 3 * BANDS; k += THREADS) {
            room[At::C + k] = state[3 * (PARAMS + LATENT) + k];
        }
        for (int k = tid; k < 24; k += THREADS) shift[k] = state[STATE_SHIFT + k];
    }
    for (int k = tid; k < PARAMS; k += THREADS) grad[k] = 0.0f;
    auto keep = [&]() {
        if (rank == 0) {
            for (int k = tid; k < PARAMS; k += THREADS) result[k] = p[k];
        }
        if (tid < LATENT) own_result[tid] = room[At::Z + tid];
        if (tid < BANDS) own_result[LATENT + tid] = room[At::C + tid];
    };
    for (int k = tid; k < 4096; k += THREADS) planes[k] = 0.0f;
    for (int k = tid; k < At::FOLDED_LEN; k += THREADS) room[At::FOLDED + k] = 0.0f;
    cluster_sync();

    // Hands a sum that this block made to all blocks of the cluster, before they meet.
    auto publish = [&](int which, int index, int to, float sum) {
        remote_store(room + At::SUMS + (which * RM + rank) * 16 + index, to, sum);
    };
    // Sum number `index` over the blocks whose statistics are shared.
    auto pooled = [&](int which, int index) {
        const float* sums = room + At::SUMS + which * RM * 16 + index;
        double sum = 0.0;
        if (args.per_emitter) return static_cast<double>(sums[rank * 16]);
#pragma unroll
        for (int r = 0; r < RM; ++r) {
            if (r < emitters) sum += sums[r * 16];
        }
        return sum;
    };

    // A and B of block b from the sums of v and v^2, and the next block's weights.
    auto normalise = [&](int b, float pixels) {
        if (b < 3 && tid >= 192 && tid < 228) {
            const int co = (tid - 192) / 6, ci = (tid - 192) % 6;
            const float* taps = p + CONV + b * CONV_LEN + co * ROW + taps_of(ci);
            float sum = 0.0f;
#pragma unroll
            for (int k = 0; k < 9; ++k) sum += taps[k];
            room[At::TAP_SUMS + tid - 192] = sum;
        }
        cluster_sync();
        if (tid < CHANNELS) {
            // Before the first step there is no origin yet, and squares nearly cancel.
            const double share = 1.0f / (pixels * groups), exact = pooled(b, tid) * share;
            const float mean = static_cast<float>(exact);
            const float variance =
                fmaxf(static_cast<float>(pooled(b, 6 + tid) * share - exact * exact), 0.0f);
            const float inverse = 1.0f / sqrtf(variance + 1e-5f);
            const int at = b * CHANNELS + tid;
            const float scale = p[AFFINE + b * 12 + tid] * inverse;
            room[At::MEAN + at] = mean;
            room[At::INVERSE + at] = inverse;
            room[At::A + at] = scale;
            room[At::B + at] = p[AFFINE + b * 12 + 6 + tid] - scale * mean;
        }
        __syncthreads();
        if (b == 3) return;
        // Folded weights lie (input channel, half of the output channels, tap, output channel).
        const float* conv = p + CONV + b * CONV_LEN;
#pragma unroll 1
        for (int k = tid; k < 324; k += THREADS) {
            const int ci = k / 54, tap = k % 54 / 6, co = k % 6;
            room[At::FOLDED + ci * ROW + co / 3 * HALF_ROW + tap * 3 + co % 3] =
                conv[co * ROW + taps_of(ci) + tap] * room[At::A + b * CHANNELS + ci];
        }
        if (tid >= 128 && tid < 128 + CHANNELS) {
            const int co = tid - 128;
            float bias = -shift[(b + 1) * CHANNELS + co];
#pragma unroll
            for (int ci = 0; ci < CHANNELS; ++ci) {
                bias = fmaf(room[At::TAP_SUMS + co * 6 + ci], room[At::B + b * CHANNELS + ci],
                            bias);
            }
            room[At::BIAS + co] = bias;
        }
        __syncthreads();
    };

    // Publishes the sums of a small block from those of 16 intervals each.
    auto publish_sums = [&](int b, int count) {
        if (tid < 12 * emitters) {
            const int index = tid % 12, c = index % 6;
            const float* from = part + c * count * 2 + index / 6;
            float sum = 0.0f;
            for (int k = 0; k < count; ++k) sum += from[k * 2];
            publish(b, index, tid / 12, sum);
        }
    };
    // Publishes sums that every warp left `width` of.
    auto publish_warps = [&](int which, int width) {
        if (tid < width * emitters) {
            const int index = tid % width;
            float sum = 0.0f;
#pragma unroll
            for (int w = 0; w < WARPS; ++w) sum += part[w * width + index];
            publish(which, index, tid / width, sum);
        }
    };

    // The way back through the normalisation of block b: alpha, beta and the scale of dx. Sums of
    // dx and dx v are published; those of the last block are of the output's gradient, to be
    // multiplied by the output weight.
    auto way_back = [&](int b, float pixels) {
        cluster_sync();
        if (tid < CHANNELS) {
            const int plain_at = b == 3 ? 6 : tid, scaled_at = b == 3 ? tid : 6 + tid;
            const float* own = room + At::SUMS + ((4 + b) * RM + rank) * 16;
            const double all_plain = pooled(4 + b, plain_at);
            const float own_plain = own[plain_at], own_scaled = own[scaled_at];
            const int at = b * CHANNELS + tid;
            const float mean = room[At::MEAN + at], inverse = room[At::INVERSE + at];
            const float scale = room[At::A + at], plain = static_cast<float>(all_plain);
            const float centred =
                static_cast<float>(pooled(4 + b, scaled_at) - mean * all_plain);
            const float own_centred =
                static_cast<float>(own_scaled - mean * static_cast<double>(own_plain));
            const float weight = b == 3 ? p[OUT + tid] : 1.0f;
            if (b == 3) grad[OUT + tid] = fmaf(scale, own_scaled, room[At::B + at] * own_plain);
            // Every block has its own share; they are summed with the other gradients.
            grad[AFFINE + b * 12 + tid] = own_centred * weight * inverse;
            grad[AFFINE + b * 12 + 6 + tid] = own_plain * weight;
            const float share = scale * weight / (pixels * groups);
            const float beta = -share * inverse * inverse * centred;
            room[At::BACK + tid] = -share * plain - beta * mean;
            room[At::BACK + 6 + tid] = beta;
            room[At::BACK + 12 + tid] = scale * weight;
        }
        __syncthreads();
    };

    // Sums of dy by channel, from `count` parts each.
    auto sum_dy = [&](int count) {
        if (tid < CHANNELS) {
            float sum = 0.0f;
            for (int k = 0; k < count; ++k) sum += dy_part[tid * count + k];
            room[At::DY_SUMS + tid] = sum;
        }
    };

    // The gradient of block b's weights, from the two parts of every input channel.
    auto weight_gradient = [&](int b) {
        const float* parts = room + At::FOLDED;
#pragma unroll 1
        for (int k = tid; k < 324; k += THREADS) {
            const int co = k / 54, ci = k % 54 / 9, tap = k % 9;
            const float* two = parts + ci * 108 + co * 9 + tap;
            const int before = (b - 1) * CHANNELS + ci;
            grad[CONV + (b - 1) * CONV_LEN + co * ROW + taps_of(ci) + tap] =
                room[At::A + before] * (two[0] + two[54]) +
                room[At::B + before] * room[At::DY_SUMS + co];
        }
    };

    // Where this thread's first two cells are does not change.
    int first_place = 0, second_place = 0;
    if (!IMITATION && tid < info.slots) first_place = args.slot_place[info.first_slot + tid];
    if (!IMITATION && tid + THREADS < info.slots) {
        second_place = args.slot_place[info.first_slot + tid + THREADS];
    }
    auto place_of = [&](int k, int q) {
        return q == 0 ? first_place : q == 1 ? second_place : args.slot_place[info.first_slot + k];
    };

    // Parameters that this block steps, for all.
    const int slice = (PARAMS + emitters - 1) / emitters;
    const int own_first = rank * slice, own_end = min(own_first + slice, PARAMS);

    int over = 0;
#pragma unroll 1
    for (int iteration = args.from; iteration < args.to; ++iteration) {
        const float size = args.rates[iteration * 3], scale = args.rates[iteration * 3 + 1];
        const float psd_size = args.rates[iteration * 3 + 2];
        // Forward.
        if (tid < CHANNELS * 16) {
            const int c = tid / 16, i = tid / 4 % 4, j = tid % 4;
            float sum = -shift[c];
#pragma unroll
            for (int k = 0; k < 9; ++k) {
                const int at = mirrored(i + k / 3 - 1, 4) * 4 + mirrored(j + k % 3 - 1, 4);
                sum = fmaf(p[c * 9 + k], room[At::Z + at], sum);
            }
            room[At::Y0 + tid] = sum;
        }
        __syncthreads();
        upsample<4>(room + At::Y0, shift, room + At::V1, part);
        publish_sums(0, 1);
        normalise(0, 64.0f);
        convolve<8, 1, 2>(room + At::V1, room + At::FOLDED, room + At::BIAS, room + At::Y1);
        __syncthreads();
        upsample<8>(room + At::Y1, shift + 6, room + At::V2, part);
        publish_sums(1, 4);
        normalise(1, 256.0f);
        convolve<16, 2, 3>(room + At::V2, room + At::FOLDED, room + At::BIAS, room + At::Y2);
        __syncthreads();
        upsample<16>(room + At::Y2, shift + 12, room + At::V3, part);
        publish_sums(2, 16);
        normalise(2, 1024.0f);
        convolve<32, 4, 6>(room + At::V3, room + At::FOLDED, room + At::BIAS, room + At::Y3);
        __syncthreads();
        const float* y3 = room + At::Y3;
        // Sums of the last image, which is never stored. Lane = column.
        const int beside = (lane + 1) & 31;
        const float far_column = lane == 31 ? 0.0f : 0.25f;
        {
#pragma unroll 1
            for (int c = 0; c < CHANNELS; ++c) {
                const float* image = y3 + c * 1024;
                const float floor = -shift[18 + c];
                float sums[2] = {0.0f, 0.0f};
                int i = warp * 4;
                float p0 = image[i * 32 + lane], p1 = image[i * 32 + beside];
#pragma unroll
                for (int k = 0; k < 4; ++k, ++i) {
                    const int below = (i + 1) & 31;
                    const float q0 = image[below * 32 + lane], q1 = image[below * 32 + beside];
                    float u[4];
                    interpolate(p0, p1, q0, q1, below ? 0.25f : 0.0f, far_column, u);
#pragma unroll
                    for (int q = 0; q < 4; ++q) {
                        const float value = fmaxf(u[q], floor);
                        sums[0] += value;
                        sums[1] = fmaf(value, value, sums[1]);
                    }
                    p0 = q0;
                    p1 = q1;
                }
                share_sums<2, 16>(sums, lane);
                part[warp * 12 + c + (lane & 16 ? 6 : 0)] = sums[0];
            }
        }
        __syncthreads();
        publish_warps(3, 12);
        normalise(3, 4096.0f);

        // The output, its loss, and the gradient before the output function.
        float logit_weight[CHANNELS], logit_offset = 0.0f;
#pragma unroll
        for (int c = 0; c < CHANNELS; ++c) {
            const float weight = p[OUT + c];
            logit_weight[c] = weight * room[At::A + 18 + c];
            logit_offset = fmaf(weight, room[At::B + 18 + c], logit_offset);
        }
        // The value of v in every channel at a place in the planes.
        auto read = [&](int place, float (&v)[CHANNELS]) {
            const int a = place >> 11, b = place >> 10 & 1, i = place >> 5 & 31, j = place & 31;
            const float fr = i == 31 ? 0.0f : 0.25f, fc = j == 31 ? 0.0f : 0.25f;
            const float wp = a ? fr : 1.0f - fr, w0 = b ? fc : 1.0f - fc;
            const int here = i * 32, there = ((i + 1) & 31) * 32, next = (j + 1) & 31;
#pragma unroll
            for (int c = 0; c < CHANNELS; ++c) {
                const float* image = y3 + c * 1024;
                const float near = w0 * image[here + j] + (1.0f - w0) * image[here + next];
                const float far = w0 * image[there + j] + (1.0f - w0) * image[there + next];
                v[c] = fmaxf(wp * near + (1.0f - wp) * far, -shift[18 + c]);
            }
        };
        float loss = 0.0f;
        if constexpr (IMITATION) {
            float tally[7] = {};
            const float* targets =
                args.targets + (static_cast<size_t>(map) * emitters + rank) * args.rows * args.cols;
#pragma unroll 1
            for (int k = 0; k < 4; ++k) {
                const int i = warp * 4 + k, below = (i + 1) & 31;
                float v[CHANNELS][4], logit[4];
#pragma unroll
                for (int q = 0; q < 4; ++q) logit[q] = logit_offset;
#pragma unroll
                for (int c = 0; c < CHANNELS; ++c) {
                    const float* image = y3 + c * 1024;
                    interpolate(image[i * 32 + lane], image[i * 32 + beside],
                                image[below * 32 + lane], image[below * 32 + beside],
                                below ? 0.25f : 0.0f, far_column, v[c]);
#pragma unroll
                    for (int q = 0; q < 4; ++q) {
                        v[c][q] = fmaxf(v[c][q], -shift[18 + c]);
                        logit[q] = fmaf(logit_weight[c], v[c][q], logit[q]);
                    }
                }
#pragma unroll
                for (int q = 0; q < 4; ++q) {
                    const int row = q < 2 ? 2 * i + 1 : (2 * i + 2) & 63;
                    const int col = q & 1 ? (2 * lane + 2) & 63 : 2 * lane + 1;
                    float d = 0.0f;
                    if (row < args.rows && col < args.cols) {
                        const float s = output_of(args.exponential, logit[q]);
                        const float power = s + info.offset;
                        const float miss = logf(power) - targets[row * args.cols + col];
                        loss = fmaf(miss, miss, loss);
                        d = 2.0f * miss / power * output_slope(args.exponential, s);
                    }
                    planes[(q * 32 + i) * 32 + lane] = d;
                    tally[6] += d;
#pragma unroll
                    for (int c = 0; c < CHANNELS; ++c) tally[c] = fmaf(d, v[c][q], tally[c]);
                }
            }
            float sums[8] = {tally[0], tally[1], tally[2], tally[3],
                             tally[4], tally[5], tally[6], loss};
            warp_sums<8>(sums, part + warp * 8);
            __syncthreads();
            publish_warps(7, 8);
        } else {
#pragma unroll 1
            for (int k = tid, q = 0; k < info.slots; k += THREADS, ++q) {
                const int place = place_of(k, q);
                float v[CHANNELS];
                read(place, v);
                float logit = logit_offset;
#pragma unroll
                for (int c = 0; c < CHANNELS; ++c) logit = fmaf(logit_weight[c], v[c], logit);
                planes[place] = output_of(args.exponential, logit);
            }
            cluster_sync();
            // Sensors are shared out among blocks and warps; lanes are bands.
            for (int k = tid; k < emitters * BANDS; k += THREADS) {
                room[At::ALL_C + k] = remote_load(room + At::C + k % BANDS, k / BANDS);
            }
            __syncthreads();
            float c_of[RM][2], dc[RM][2];
#pragma unroll
            for (int r = 0; r < RM; ++r)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    c_of[r][h] = r < emitters ? room[At::ALL_C + r * BANDS + h * 32 + lane] : 0.0f;
                    dc[r][h] = 0.0f;
                }
            const int share = (info.slots + emitters - 1) / emitters;
            const int end = min(info.slots, (rank + 1) * share);
            const float start = args.kind == POWER ? 0.0f : info.offset;
            auto entry_of = [&](int n, int h) {
                const int band = h * 32 + lane;
                if (band >= args.bands) return 0.0f;
                const size_t at = static_cast<size_t>(n) * args.bands + band;
                return args.kind == LEVELS ? static_cast<float>(args.levels[at])
                                           : args.targets[at];
            };
#pragma unroll 1
            for (int base = rank * share + warp; base < end; base += 32 * WARPS) {
                // Each lane knows one of the next 32 cells of this warp.
                const int known = info.first_slot + min(base + WARPS * lane, end - 1);
                const int places = args.slot_place[known];
                const int sensors = args.slot_sensor[known], after = args.slot_sensor[known + 1];
                const int count = min(32, (end - base + WARPS - 1) / WARPS);
                int place = shuffle_int(places, 0), sensor = shuffle_int(sensors, 0);
                float s_own = lane < emitters ? remote_load(planes + place, lane) : 0.0f;
                float read_there[2] = {entry_of(sensor, 0), entry_of(sensor, 1)};
#pragma unroll 1
                for (int q = 0; q < count; ++q) {
                    const int ahead = min(q + 1, count - 1);
                    const int last = shuffle_int(after, q);
                    const int next_place = shuffle_int(places, ahead);
                    const int next_sensor = shuffle_int(sensors, ahead);
                    const float s_next =
                        lane < emitters ? remote_load(planes + next_place, lane) : 0.0f;
                    const float next[2] = {entry_of(next_sensor, 0), entry_of(next_sensor, 1)};
                    float s[RM], ds[RM];
#pragma unroll
                    for (int r = 0; r < RM; ++r) {
                        s[r] = shuffle(s_own, r);
                        ds[r] = 0.0f;
                    }
#pragma unroll 1
                    for (int n = sensor; n < last; ++n) {
#pragma unroll
                        for (int h = 0; h < 2; ++h) {
                            if (h * 32 + lane >= args.bands) continue;
                            float x = start;
#pragma unroll
                            for (int r = 0; r < RM; ++r) x = fmaf(s[r], c_of[r][h], x);
                            const float entry = n == sensor ? read_there[h] : entry_of(n, h);
                            float slope;
                            if (args.kind == LEVELS) {
                                const Entry level = level_entry(
                                    static_cast<int>(entry), args.edge + info.first_edge,
                                    info.edges, info.sigma, x);
                                loss += level.loss;
                                slope = level.slope;
                            } else {
                                loss += squared_entry(args.kind, entry, x, slope);
                            }
#pragma unroll
                            for (int r = 0; r < RM; ++r) {
                                ds[r] = fmaf(slope, c_of[r][h], ds[r]);
                                dc[r][h] = fmaf(slope, s[r], dc[r][h]);
                            }
                        }
                    }
                    share_sums<RM, 16>(ds, lane);
                    const int r = shared_index<RM, 16>(0, lane);
                    const float own = shuffle(s_own, r);
                    // All lanes have read the SLFs here. Several lanes hold the same sum.
                    __syncwarp();
                    if (r < emitters && lane % (32 / RM) == 0) {
                        remote_store(planes + place, r,
                                     ds[0] * output_slope(args.exponential, own));
                    }
                    place = next_place;
                    sensor = next_sensor;
                    s_own = s_next;
                    read_there[0] = next[0];
                    read_there[1] = next[1];
                }
            }
            // PSD gradients: a few warps at a time add theirs.
            float* sums = room + At::FOLDED;
            constexpr int AT_ONCE = At::FOLDED_LEN / (RM * BANDS);
#pragma unroll
            for (int round = 0; round < WARPS / AT_ONCE; ++round) {
                if (warp / AT_ONCE == round) {
                    float* mine = sums + warp % AT_ONCE * RM * BANDS;
#pragma unroll
                    for (int r = 0; r < RM; ++r)
#pragma unroll
                        for (int h = 0; h < 2; ++h) {
                            float* to = mine + r * BANDS + h * 32 + lane;
                            *to = round ? *to + dc[r][h] : dc[r][h];
                        }
                }
                __syncthreads();
            }
#pragma unroll 1
            for (int k = tid; k < RM * BANDS; k += THREADS) {
                float sum = 0.0f;
#pragma unroll
                for (int q = 0; q < AT_ONCE; ++q) sum += sums[q * RM * BANDS + k];
                room[At::PSD_SUMS + k] = sum;
            }
            // Penalties join the loss: everyone's own latent and PSD, and a share of the network.
            float squares = 0.0f;
            if (tid < LATENT) squares = args.penalty_latent * room[At::Z + tid] * room[At::Z + tid];
            if (tid < BANDS) {
                squares = fmaf(args.penalty_psd * room[At::C + tid], room[At::C + tid], squares);
            }
#pragma unroll 1
            for (int k = own_first + tid; k < own_end; k += THREADS) {
                squares = fmaf(args.penalty_network * p[k], p[k], squares);
            }
            float both[2] = {loss, squares};
            warp_sums<2>(both, part + warp * 2);
            __syncthreads();
            publish_warps(8, 2);
            cluster_sync();
            float tally[8] = {};
#pragma unroll 1
            for (int k = tid, q = 0; k < info.slots; k += THREADS, ++q) {
                const int place_k = place_of(k, q);
                float v[CHANNELS];
                read(place_k, v);
                const float d = planes[place_k];
                tally[6] += d;
#pragma unroll
                for (int c = 0; c < CHANNELS; ++c) tally[c] = fmaf(d, v[c], tally[c]);
            }
            warp_sums<8>(tally, part + warp * 8);
            __syncthreads();
            publish_warps(7, 8);
        }
        way_back(3, 4096.0f);

        // The loss before this step; every block of the cluster decides the same.
        double total = 0.0;
        for (int r = 0; r < emitters; ++r) {
            const float* sums = room + At::SUMS + ((IMITATION ? 7 : 8) * RM + r) * 16;
            total += IMITATION ? static_cast<double>(sums[7])
                               : static_cast<double>(sums[0]) + sums[1];
        }
        if (!isfinite(total)) {
            over = 2;
        } else {
            const double change = now.done ? fabs(now.last - total) : __int_as_float(0x7f800000);
            const double relative = change / (now.done ? fabs(now.last) : 1.0);
            now.calm = relative < args.tolerance ? now.calm + 1 : 0;
            now.last = total;
            if (rank == 0 && tid == 0) trace[now.done] = total;
            now.done += 1;
            if (total < now.least) {
                now.least = total;
                if (args.keeps_best) keep();
            }
            over = args.both ? (iteration >= args.iterations && change < args.tolerance)
                             : now.calm >= 5;
        }
        if (over) break;

        // Backward: the last block. A warp takes eight rows of a channel, three times.
        {
            // Rows that other warps are about to overwrite.
            float above[3], beyond[3];
#pragma unroll
            for (int t = 0; t < 3; ++t) {
                const int task = warp * 3 + t, first = task % 4 * 8;
                const float* image = y3 + task / 4 * 1024;
                above[t] = image[((first + 31) & 31) * 32 + lane];
                beyond[t] = image[((first + 8) & 31) * 32 + lane];
            }
            __syncthreads();
#pragma unroll
            for (int t = 0; t < 3; ++t) {
                const int task = warp * 3 + t, c = task / 4, first = task % 4 * 8;
                float* image = room + At::Y3 + c * 1024 + lane;
                const float floor = -shift[18 + c];
                const float alpha = room[At::BACK + c], beta = room[At::BACK + 6 + c];
                const float scale_c = room[At::BACK + 12 + c];
                float p0 = above[t], p1 = shuffle(p0, beside);
                float carry0 = 0.0f, carry1 = 0.0f, sum = 0.0f;
#pragma unroll 3
                for (int k = 0; k < 9; ++k) {
                    const int i = (first + k + 31) & 31, below = first + k;
                    const float q0 = k == 8 ? beyond[t] : image[below * 32];
                    const float q1 = shuffle(q0, beside);
                    const float fr = i == 31 ? 0.0f : 0.25f;
                    const float* upstream = planes + i * 32 + lane;
                    float u[4];
                    interpolate(p0, p1, q0, q1, fr, far_column, u);
#pragma unroll
                    for (int q = 0; q < 4; ++q) {
                        const float d = fmaf(scale_c, upstream[q * 1024], fmaf(beta, u[q], alpha));
                        u[q] = u[q] > floor ? d : 0.0f;
                    }
                    // To this row from its own interval, and what the one above left.
                    const float t0 = carry0 + fmaf(fr, u[2] - u[0], u[0]);
                    const float t1 = carry1 + fmaf(fr, u[3] - u[1], u[1]);
                    const float lean = far_column * (t1 - t0);
                    const float dy = t0 + lean + shuffle(t1 - lean, (lane + 31) & 31);
                    if (k > 0) {
                        image[i * 32] = dy;
                        sum += dy;
                    }
                    carry0 = fmaf(fr, u[0] - u[2], u[2]);
                    carry1 = fmaf(fr, u[1] - u[3], u[3]);
                    p0 = q0;
                    p1 = q1;
                }
                float one[1] = {sum};
                warp_sums<1>(one, dy_part + task);
            }
            __syncthreads();
            sum_dy(4);
        }
        weight_sums<32>(room + At::Y3, room + At::V3, room + At::FOLDED);
        {
            const int i = warp * 4;
            float dx[4][6];
            convolve_back<32, 4, 6>(room + At::Y3, p + CONV + 2 * CONV_LEN, i, lane, 0, dx);
            float sums[12];
#pragma unroll
            for (int c = 0; c < CHANNELS; ++c) {
                sums[c] = sums[6 + c] = 0.0f;
#pragma unroll
                for (int q = 0; q < 4; ++q) {
                    sums[c] += dx[q][c];
                    sums[6 + c] = fmaf(dx[q][c], room[At::V3 + (c * 32 + i + q) * 32 + lane],
                                       sums[6 + c]);
                }
            }
            warp_sums<12>(sums, part + warp * 12);
            __syncthreads();
            weight_gradient(3);
            publish_warps(6, 12);
            way_back(2, 1024.0f);
#pragma unroll
            for (int c = 0; c < CHANNELS; ++c) {
                const float alpha = room[At::BACK + c], beta = room[At::BACK + 6 + c];
                const float scale_c = room[At::BACK + 12 + c], floor = -shift[12 + c];
#pragma unroll
                for (int q = 0; q < 4; ++q) {
                    float* v = room + At::V3 + (c * 32 + i + q) * 32 + lane;
                    *v = *v > floor ? fmaf(scale_c, dx[q][c], fmaf(beta, *v, alpha)) : 0.0f;
                }
            }
            __syncthreads();
        }
        upsample_back<16>(room + At::V3, room + At::Y2, dy_part);
        sum_dy(16);
        weight_sums<16>(room + At::Y2, room + At::V2, room + At::FOLDED);
        {
            const int ci = tid / 128 * 3, i = tid % 128 / 16 * 2, j = tid % 16;
            float dx[2][3];
            convolve_back<16, 2, 3>(room + At::Y2, p + CONV + CONV_LEN, i, j, ci, dx);
            float sums[6];
#pragma unroll
            for (int c = 0; c < 3; ++c) {
                const float* v = room + At::V2 + ((ci + c) * 16 + i) * 16 + j;
                sums[c] = dx[0][c] + dx[1][c];
                sums[3 + c] = fmaf(dx[0][c], v[0], dx[1][c] * v[16]);
            }
            warp_sums<6>(sums, part + warp * 6);
            __syncthreads();
            weight_gradient(2);
            if (tid < 12 * emitters) {
                const int index = tid % 12, c = index % 6;
                const float* from = part + c / 3 * 24 + index / 6 * 3 + c % 3;
                publish(5, index, tid / 12, from[0] + from[6] + from[12] + from[18]);
            }
            way_back(1, 256.0f);
#pragma unroll
            for (int c = 0; c < 3; ++c) {
                const float alpha = room[At::BACK + ci + c], beta = room[At::BACK + 6 + ci + c];
                const float scale_c = room[At::BACK + 12 + ci + c], floor = -shift[6 + ci + c];
#pragma unroll
                for (int q = 0; q < 2; ++q) {
                    float* v = room + At::V2 + ((ci + c) * 16 + i + q) * 16 + j;
                    *v = *v > floor ? fmaf(scale_c, dx[q][c], fmaf(beta, *v, alpha)) : 0.0f;
                }
            }
            __syncthreads();
        }
        upsample_back<8>(room + At::V2, room + At::Y1, dy_part);
        sum_dy(4);
        weight_sums<8>(room + At::Y1, room + At::V1, room + At::FOLDED);
        {
            // Six warps: two for each pair of channels.
            const int ci = tid / 64 * 2, i = tid % 64 / 8, j = tid % 8;
            const bool works = tid < 192;
            float dx[1][2] = {};
            if (works) {
                convolve_back<8, 1, 2>(room + At::Y1, p + CONV, i, j, ci, dx);
                float sums[4];
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    sums[c] = dx[0][c];
                    sums[2 + c] = dx[0][c] * room[At::V1 + ((ci + c) * 8 + i) * 8 + j];
                }
                warp_sums<4>(sums, part + warp * 4);
            }
            __syncthreads();
            weight_gradient(1);
            if (tid < 12 * emitters) {
                const int index = tid % 12, c = index % 6;
                const float* from = part + c / 2 * 8 + index / 6 * 2 + c % 2;
                publish(4, index, tid / 12, from[0] + from[4]);
            }
            way_back(0, 64.0f);
            if (works) {
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    const float alpha = room[At::BACK + ci + c];
                    const float beta = room[At::BACK + 6 + ci + c];
                    const float scale_c = room[At::BACK + 12 + ci + c], floor = -shift[ci + c];
                    float* v = room + At::V1 + ((ci + c) * 8 + i) * 8 + j;
                    *v = *v > floor ? fmaf(scale_c, dx[0][c], fmaf(beta, *v, alpha)) : 0.0f;
                }
            }
            __syncthreads();
        }
        upsample_back<4>(room + At::V1, room + At::Y0, dy_part);
        if (tid < 54) {
            const int c = tid / 9, k = tid % 9;
            float sum = 0.0f;
            for (int q = 0; q < 16; ++q) {
                const int at = mirrored(q / 4 + k / 3 - 1, 4) * 4 + mirrored(q % 4 + k % 3 - 1, 4);
                sum = fmaf(room[At::Y0 + c * 16 + q], room[At::Z + at], sum);
            }
            grad[tid] = sum;
        } else if (tid >= 64 && tid < 64 + CHANNELS * LATENT) {
            // The latent's gradient, one channel's share.
            const int c = (tid - 64) / 16, i = tid / 4 % 4, j = tid % 4;
            const float* dy = room + At::Y0 + c * 16;
            float sum = 0.0f;
            for (int row = max(i - 1, 0); row <= min(i + 1, 3); ++row) {
                const float left = j > 0 ? dy[row * 4 + j - 1] : 0.0f;
                const float right = j < 3 ? dy[row * 4 + j + 1] : 0.0f;
                const float x[3] = {j == 1 ? right + left : right, dy[row * 4 + j],
                                    j == 2 ? left + right : left};
                for (int kw = 0; kw < 3; ++kw) {
                    const float* taps = p + c * 9 + kw;
                    sum = fmaf(x[kw], taps[(i + 1 - row) * 3], sum);
                    if (row == 0 && i == 1) sum = fmaf(x[kw], taps[0], sum);
                    if (row == 3 && i == 2) sum = fmaf(x[kw], taps[6], sum);
                }
            }
            part[tid - 64] = sum;
        }
        cluster_sync();

        // The step.
#pragma unroll 1
        for (int k = own_first + tid; k < own_end; k += THREADS) {
            float shares[RM];
#pragma unroll
            for (int r = 0; r < RM; ++r) shares[r] = r < emitters ? remote_load(grad + k, r) : 0.0f;
            float gradient = 2.0f * args.penalty_network * p[k];
#pragma unroll
            for (int r = 0; r < RM; ++r) gradient += shares[r];
            const float moved = adam(p[k], gradient, room[At::M + k], room[At::V + k], size, scale);
            for (int r = 0; r < emitters; ++r) remote_store(p + k, r, moved);
        }
        if (tid >= 64 && tid < 64 + LATENT) {
            float* z = room + At::Z + tid - 64;
            float gradient = 2.0f * args.penalty_latent * *z;
            for (int c = 0; c < CHANNELS; ++c) gradient += part[c * 16 + tid - 64];
            *z = adam(*z, gradient, z[LATENT], z[2 * LATENT], size, scale);
        }
        if (!IMITATION && tid >= 128 && tid - 128 < BANDS) {
            float* c = room + At::C + tid - 128;
            float gradient = 2.0f * args.penalty_psd * *c;
#pragma unroll
            for (int r = 0; r < RM; ++r) {
                if (r < emitters) {
                    gradient += remote_load(room + At::PSD_SUMS + rank * BANDS + tid - 128, r);
                }
            }
            *c = fmaxf(adam(*c, gradient, c[BANDS], c[2 * BANDS], psd_size, scale), 0.0f);
        }
        // What was the mean is now the origin of the sums.
        if (tid >= 32 && tid < 56) shift[tid - 32] += room[At::MEAN + tid - 32];
        cluster_sync();
    }

    // Nobody leaves while others may still read from here.
    cluster_sync();
    if (!args.keeps_best) keep();
    for (int k = tid; k < PARAMS; k += THREADS) {
        state[k] = p[k];
        state[PARAMS + k] = room[At::M + k];
        state[2 * PARAMS + k] = room[At::V + k];
    }
    for (int k = tid; k < 3 * LATENT; k += THREADS) state[3 * PARAMS + k] = room[At::Z + k];
    for (int k = tid; k < 3 * BANDS; k += THREADS) {
        state[3 * (PARAMS + LATENT) + k] = room[At::C + k];
    }
    for (int k = tid; k < 24; k += THREADS) state[STATE_SHIFT + k] = shift[k];
    if (rank == 0 && tid == 0) {
        now.over = over;
        *standing = now;
    }
}

#ifdef PORTOLAN_EMULATED
#define BOUNDS
#else
#define BOUNDS __launch_bounds__(THREADS, 2)
#endif

extern "C" __global__ void BOUNDS fit_up_to_4(FitArgs args) { descend<4, false>(args); }
extern "C" __global__ void BOUNDS fit_up_to_8(FitArgs args) { descend<8, false>(args); }
extern "C" __global__ void BOUNDS imitate_up_to_4(FitArgs args) { descend<4, true>(args); }
extern "C" __global__ void BOUNDS imitate_up_to_8(FitArgs args) { descend<8, true>(args); }
