// Fits in device memory, a launch for every step of every layer: any grid, any shape of decoder,
// any number of emitters and bands, on devices from compute capability 8.0 on. Many maps share a
// launch.
//
// Images lie (map, emitter, channel, row, column). Names as in `resident.cu`: y is a convolution's
// output, v the rectified image after upsampling, x = A v + B what normalisation makes of it; x is
// made where it is read. Sums go from threads to blocks to one thread in a fixed order.
#include "common.cuh"

using namespace portolan;

constexpr int THREADS = 256;

// One block of the decoder in one batch.
struct LayerArgs {
    const float* params;     // maps x parameters
    const float* input;      // v of the block before, or the latents
    const float* input_affine;  // A and B of the block before, by (map, emitter, channel); or null
    float* y;
    float* v;
    float* affine;           // A, B, mean, inverse of this block, by (map, emitter, channel)
    float* back;             // alpha, beta, scale on the way back, likewise
    float* dx;               // gradient in x of this block's output; (map, emitter) only if `last`
    float* dy;
    float* dinput;           // gradient in the input's x
    float* grad;             // maps x parameters
    double* partial;         // sums of blocks
    float* weight_parts;     // sums for weights: (map, emitter), part, weight
    int maps;
    int emitters;
    int parameters;
    int conv;                // where the weights lie; scales and offsets, or -1
    int gamma;
    int beta;
    int out;
    int inputs;
    int channels;
    int kernel;
    int rows;                // of the input
    int cols;
    int scale;               // 1 or 2
    int bilinear;
    int zero_padding;
    int per_emitter;
    int last;
    int parts;               // blocks that share an image's sums
    int weight_tiles;        // blocks that share an image's sums for weights
    int tile_cols;           // columns of such a block, a power of 2 up to THREADS
};

__device__ __forceinline__ int reflected(int at, int n) {
    if (n == 1) return 0;
    const int period = 2 * (n - 1);
    at %= period;
    if (at < 0) at += period;
    return at < n ? at : period - at;
}

// Sums two numbers over a block of threads, in a fixed order; thread 0 has the result.
__device__ __forceinline__ void block_sums(double (&values)[2], double* room) {
    const int tid = threadIdx.x;
    room[tid] = values[0];
    room[THREADS + tid] = values[1];
    __syncthreads();
#pragma unroll 1
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            room[tid] += room[tid + half];
            room[THREADS + tid] += room[THREADS + tid + half];
        }
        __syncthreads();
    }
    values[0] = room[0];
    values[1] = room[THREADS];
}

__device__ __forceinline__ float input_at(
    const LayerArgs& args, const float* image, float a, float b, int i, int j) {
    if (args.zero_padding && (i < 0 || j < 0 || i >= args.rows || j >= args.cols)) return 0.0f;
    return fmaf(a, image[static_cast<size_t>(reflected(i, args.rows)) * args.cols +
                         reflected(j, args.cols)], b);
}

// y = convolution of x. Grid: pixels / THREADS, channels in groups of CO, maps x emitters.
constexpr int CO = 6;
extern "C" __global__ void convolve(LayerArgs args) {
    SHARED_FLOATS(room);
    const int image = blockIdx.z, map = image / args.emitters;
    const int first = blockIdx.y * CO, k = args.kernel, area = k * k;
    const int count = min(CO, args.channels - first);
    const size_t pixels = static_cast<size_t>(args.rows) * args.cols;
    const float* weights = args.params + static_cast<size_t>(map) * args.parameters + args.conv;
    // Weights of this group: (input, tap, output).
    for (int q = threadIdx.x; q < args.inputs * area * CO; q += THREADS) {
        const int c = q % CO;
        room[q] = c < count
            ? weights[(static_cast<size_t>(first + c) * args.inputs + q / (CO * area)) * area +
                      q / CO % area]
            : 0.0f;
    }
    __syncthreads();
    const size_t at = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (at >= pixels) return;
    const int i = static_cast<int>(at / args.cols), j = static_cast<int>(at % args.cols);
    const int before = (k - 1) / 2;
    const bool inner = i >= before && j >= before && i + k - before <= args.rows &&
                       j + k - before <= args.cols;
    float sum[CO] = {};
    for (int ci = 0; ci < args.inputs; ++ci) {
        const size_t plane = static_cast<size_t>(image) * args.inputs + ci;
        const float* from = args.input + plane * pixels;
        const float a = args.input_affine ? args.input_affine[plane * 4] : 1.0f;
        const float b = args.input_affine ? args.input_affine[plane * 4 + 1] : 0.0f;
        for (int kh = 0; kh < k; ++kh) {
            for (int kw = 0; kw < k; ++kw) {
                const int si = i + kh - before, sj = j + kw - before;
                const float x = inner
                    ? fmaf(a, from[static_cast<size_t>(si) * args.cols + sj], b)
                    : input_at(args, from, a, b, si, sj);
                const float* w = room + ((ci * k + kh) * k + kw) * CO;
#pragma unroll
                for (int c = 0; c < CO; ++c) sum[c] = fmaf(x, w[c], sum[c]);
            }
        }
    }
    for (int c = 0; c < count; ++c) {
        args.y[(static_cast<size_t>(image) * args.channels + first + c) * pixels + at] = sum[c];
    }
}

// The pixel of an upsampled and rectified image.
__device__ __forceinline__ float upsampled(
    const LayerArgs& args, const float* y, int i, int j) {
    if (!args.bilinear) {
        return fmaxf(y[static_cast<size_t>(i / args.scale) * args.cols + j / args.scale], 0.0f);
    }
    const int near_i = i / 2, near_j = j / 2;
    const int far_i = i & 1 ? min(near_i + 1, args.rows - 1) : max(near_i - 1, 0);
    const int far_j = j & 1 ? min(near_j + 1, args.cols - 1) : max(near_j - 1, 0);
    const float* near = y + static_cast<size_t>(near_i) * args.cols;
    const float* far = y + static_cast<size_t>(far_i) * args.cols;
    const float n = fmaf(0.25f, near[far_j] - near[near_j], near[near_j]);
    const float f = fmaf(0.25f, far[far_j] - far[near_j], far[near_j]);
    return fmaxf(fmaf(0.25f, f - n, n), 0.0f);
}

// v from y, and the sums of v and of its squares about the first value that the block makes. Grid:
// parts, channels, maps x emitters.
extern "C" __global__ void upsample(LayerArgs args) {
    SHARED_FLOATS(room);
    const size_t plane = static_cast<size_t>(blockIdx.z) * args.channels + blockIdx.y;
    const int rows = args.rows * args.scale, cols = args.cols * args.scale;
    const size_t pixels = static_cast<size_t>(rows) * cols;
    const float* y = args.y + plane * args.rows * args.cols;
    float* v = args.v + plane * pixels;
    // An origin that all of the plane's blocks share keeps squares small.
    const float origin = upsampled(args, y, rows / 2, cols / 2);
    float first = 0.0f, second = 0.0f;
    for (size_t at = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x; at < pixels;
         at += static_cast<size_t>(args.parts) * THREADS) {
        const float value =
            upsampled(args, y, static_cast<int>(at / cols), static_cast<int>(at % cols));
        v[at] = value;
        const float off = value - origin;
        first += off;
        second = fmaf(off, off, second);
    }
    double sums[2] = {first, second};
    block_sums(sums, reinterpret_cast<double*>(room));
    if (threadIdx.x == 0) {
        double* to = args.partial + (plane * args.parts + blockIdx.x) * 2;
        to[0] = sums[0];
        to[1] = sums[1];
        if (blockIdx.x == 0) args.affine[plane * 4 + 2] = origin;
    }
}

// A, B, mean and inverse from the sums. One thread for each (map, channel).
extern "C" __global__ void normalise(LayerArgs args) {
    const int id = blockIdx.x * THREADS + threadIdx.x;
    if (id >= args.maps * args.channels) return;
    const int map = id / args.channels, c = id % args.channels;
    const double pixels =
        static_cast<double>(args.rows) * args.scale * args.cols * args.scale;
    const float* params = args.params + static_cast<size_t>(map) * args.parameters;
    const int together = args.per_emitter ? 1 : args.emitters;
    for (int first = 0; first < args.emitters; first += together) {
        double mean = 0.0, square = 0.0;
        for (int pass = 0; pass < 2; ++pass) {
            for (int e = first; e < first + together; ++e) {
                const size_t plane =
                    (static_cast<size_t>(map) * args.emitters + e) * args.channels + c;
                const double origin = args.affine[plane * 4 + 2];
                double one = 0.0, two = 0.0;
                for (int k = 0; k < args.parts; ++k) {
                    one += args.partial[(plane * args.parts + k) * 2];
                    two += args.partial[(plane * args.parts + k) * 2 + 1];
                }
                if (pass == 0) {
                    mean += one / pixels + origin;
                } else {
                    const double off = one / pixels + origin - mean;
                    square += two - one * one / pixels + pixels * off * off;
                }
            }
            if (pass == 0) mean /= together;
        }
        const double variance = fmax(square / (pixels * together), 0.0);
        const double inverse = 1.0 / sqrt(variance + 1e-5);
        const bool plain = args.gamma < 0;
        const double scale = plain ? 1.0 : params[args.gamma + c] * inverse;
        const double offset = plain ? 0.0 : params[args.beta + c] - scale * mean;
        for (int e = first; e < first + together; ++e) {
            float* to = args.affine +
                        ((static_cast<size_t>(map) * args.emitters + e) * args.channels + c) * 4;
            to[0] = static_cast<float>(scale);
            to[1] = static_cast<float>(offset);
            to[2] = static_cast<float>(mean);
            to[3] = static_cast<float>(inverse);
        }
    }
}

// Sums of dx and of dx (v - mean) over an image. Grid: parts, channels, maps x emitters. The last
// block's dx is one image for all channels, to be weighed by the output weights.
extern "C" __global__ void tally(LayerArgs args) {
    SHARED_FLOATS(room);
    const size_t plane = static_cast<size_t>(blockIdx.z) * args.channels + blockIdx.y;
    const size_t pixels = static_cast<size_t>(args.rows) * args.scale * args.cols * args.scale;
    const float* dx = args.dx + (args.last ? blockIdx.z : plane) * pixels;
    const float* v = args.v + plane * pixels;
    const float mean = args.gamma < 0 ? 0.0f : args.affine[plane * 4 + 2];
    float first = 0.0f, second = 0.0f;
    for (size_t at = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x; at < pixels;
         at += static_cast<size_t>(args.parts) * THREADS) {
        const float d = dx[at];
        first += d;
        second = fmaf(d, v[at] - mean, second);
    }
    double sums[2] = {first, second};
    block_sums(sums, reinterpret_cast<double*>(room));
    if (threadIdx.x == 0) {
        double* to = args.partial + (plane * args.parts + blockIdx.x) * 2;
        to[0] = sums[0];
        to[1] = sums[1];
    }
}

// The way back through normalisation, and the gradients of scales, offsets and output weights. One
// thread for each (map, channel).
extern "C" __global__ void way_back(LayerArgs args) {
    const int id = blockIdx.x * THREADS + threadIdx.x;
    if (id >= args.maps * args.channels) return;
    const int map = id / args.channels, c = id % args.channels;
    const double pixels =
        static_cast<double>(args.rows) * args.scale * args.cols * args.scale;
    const float* params = args.params + static_cast<size_t>(map) * args.parameters;
    float* grad = args.grad + static_cast<size_t>(map) * args.parameters;
    const double weight = args.last ? params[args.out + c] : 1.0;
    const int together = args.per_emitter ? 1 : args.emitters;
    double dgamma = 0.0, dbeta = 0.0, dout = 0.0;
    for (int first = 0; first < args.emitters; first += together) {
        double plain = 0.0, scaled = 0.0;
        for (int e = first; e < first + together; ++e) {
            const size_t plane =
                (static_cast<size_t>(map) * args.emitters + e) * args.channels + c;
            for (int k = 0; k < args.parts; ++k) {
                plain += args.partial[(plane * args.parts + k) * 2];
                scaled += args.partial[(plane * args.parts + k) * 2 + 1];
            }
        }
        const float* affine =
            args.affine + ((static_cast<size_t>(map) * args.emitters + first) * args.channels + c) * 4;
        double alpha = 0.0, beta = 0.0, scale = weight;
        if (args.gamma >= 0) {
            const double a = affine[0], mean = affine[2], inverse = affine[3];
            const double count = pixels * together;
            // x = A (v - mean) + offset, with the offset B + A mean.
            dout += a * scaled + (affine[1] + a * mean) * plain;
            dgamma += scaled * weight * inverse;
            dbeta += plain * weight;
            scale = a * weight;
            beta = -a * inverse * inverse * scaled * weight / count;
            alpha = -a * plain * weight / count - beta * mean;
        } else {
            dout += scaled;
        }
        for (int e = first; e < first + together; ++e) {
            float* to = args.back +
                        ((static_cast<size_t>(map) * args.emitters + e) * args.channels + c) * 4;
            to[0] = static_cast<float>(alpha);
            to[1] = static_cast<float>(beta);
            to[2] = static_cast<float>(scale);
        }
    }
    if (args.gamma >= 0) {
        grad[args.gamma + c] = static_cast<float>(dgamma);
        grad[args.beta + c] = static_cast<float>(dbeta);
    }
    if (args.last) grad[args.out + c] = static_cast<float>(dout);
}

// dy from dx through normalisation, ReLU and upsampling: every pixel of y gathers from the pixels
// that it lent to. Grid: pixels / THREADS, channels, maps x emitters.
extern "C" __global__ void upsample_back(LayerArgs args) {
    const size_t plane = static_cast<size_t>(blockIdx.z) * args.channels + blockIdx.y;
    const size_t small = static_cast<size_t>(args.rows) * args.cols;
    const size_t at = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (at >= small) return;
    const int i = static_cast<int>(at / args.cols), j = static_cast<int>(at % args.cols);
    const int rows = args.rows * args.scale, cols = args.cols * args.scale;
    const size_t pixels = static_cast<size_t>(rows) * cols;
    const float* v = args.v + plane * pixels;
    const float* dx = args.dx + (args.last ? blockIdx.z : plane) * pixels;
    const float* back = args.back + plane * 4;
    const float alpha = back[0], beta = back[1], scale = back[2];
    auto dv = [&](int r, int s) {
        const size_t pixel = static_cast<size_t>(r) * cols + s;
        const float value = v[pixel];
        return value > 0.0f ? fmaf(scale, dx[pixel], fmaf(beta, value, alpha)) : 0.0f;
    };
    float sum = 0.0f;
    if (!args.bilinear) {
        for (int a = 0; a < args.scale; ++a)
            for (int b = 0; b < args.scale; ++b) sum += dv(i * args.scale + a, j * args.scale + b);
    } else {
        const float wi[4] = {i ? 0.25f : 0.0f, i ? 0.75f : 1.0f,
                             i + 1 < args.rows ? 0.75f : 1.0f, i + 1 < args.rows ? 0.25f : 0.0f};
        const float wj[4] = {j ? 0.25f : 0.0f, j ? 0.75f : 1.0f,
                             j + 1 < args.cols ? 0.75f : 1.0f, j + 1 < args.cols ? 0.25f : 0.0f};
#pragma unroll
        for (int a = 0; a < 4; ++a) {
            const int r = min(max(2 * i + a - 1, 0), rows - 1);
            float along = 0.0f;
#pragma unroll
            for (int b = 0; b < 4; ++b) {
                along = fmaf(wj[b], dv(r, min(max(2 * j + b - 1, 0), cols - 1)), along);
            }
            sum = fmaf(wi[a], along, sum);
        }
    }
    args.dy[plane * small + at] = sum;
}

// The gradient in x of a convolution's input. Grid: pixels / THREADS, input channels in groups of
// CO, maps x emitters.
extern "C" __global__ void convolve_back(LayerArgs args) {
    SHARED_FLOATS(room);
    const int image = blockIdx.z, map = image / args.emitters;
    const int first = blockIdx.y * CO, k = args.kernel, area = k * k;
    const int count = min(CO, args.inputs - first);
    const size_t pixels = static_cast<size_t>(args.rows) * args.cols;
    const float* weights = args.params + static_cast<size_t>(map) * args.parameters + args.conv;
    // Weights of this group: (output, tap, input).
    for (int q = threadIdx.x; q < args.channels * area * CO; q += THREADS) {
        const int c = q % CO;
        room[q] = c < count
            ? weights[(static_cast<size_t>(q / (CO * area)) * args.inputs + first + c) * area +
                      q / CO % area]
            : 0.0f;
    }
    __syncthreads();
    const size_t at = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (at >= pixels) return;
    const int i = static_cast<int>(at / args.cols), j = static_cast<int>(at % args.cols);
    const int before = (k - 1) / 2, after = k / 2;
    float sum[CO] = {};
    const float* dy = args.dy + static_cast<size_t>(image) * args.channels * pixels;
    auto gather = [&](int ei, int ej) {
        // Pixel (ei, ej), perhaps beyond the border, was read by outputs ei + before - kh.
        for (int kh = 0; kh < k; ++kh) {
            const int oi = ei + before - kh;
            if (oi < 0 || oi >= args.rows) continue;
            for (int kw = 0; kw < k; ++kw) {
                const int oj = ej + before - kw;
                if (oj < 0 || oj >= args.cols) continue;
                const float* from = dy + static_cast<size_t>(oi) * args.cols + oj;
                const float* w = room + (kh * k + kw) * CO;
                for (int co = 0; co < args.channels; ++co) {
                    const float d = from[co * pixels];
#pragma unroll
                    for (int c = 0; c < CO; ++c) {
                        sum[c] = fmaf(d, w[co * area * CO + c], sum[c]);
                    }
                }
            }
        }
    };
    // The pixel itself, and every place in the margins that mirrors it.
    const int margin = args.zero_padding ? 0 : before + after;
    for (int m = -1; m < margin; ++m) {
        const int ei = m < 0 ? i : m < before ? -1 - m : args.rows + m - before;
        if (m >= 0 && reflected(ei, args.rows) != i) continue;
        for (int n = -1; n < margin; ++n) {
            const int ej = n < 0 ? j : n < before ? -1 - n : args.cols + n - before;
            if (n < 0 || reflected(ej, args.cols) == j) gather(ei, ej);
        }
    }
    for (int c = 0; c < count; ++c) {
        args.dinput[(static_cast<size_t>(image) * args.inputs + first + c) * pixels + at] = sum[c];
    }
}

// Rows that a thread walks down for the gradient of 3 x 3 weights.
constexpr int WALK = 32;

// Sums of dy x for the 3 x 3 weights of one input channel and a group of output channels. A thread
// walks down a column with the nine pixels around it. Grid: tiles, input channels x groups, maps x
// emitters.
extern "C" __global__ void weights_3x3(LayerArgs args) {
    SHARED_FLOATS(room);
    const int image = blockIdx.z, ci = blockIdx.y % args.inputs;
    const int first = blockIdx.y / args.inputs * CO, count = min(CO, args.channels - first);
    const size_t pixels = static_cast<size_t>(args.rows) * args.cols;
    const int across = (args.cols + args.tile_cols - 1) / args.tile_cols;
    const int j = blockIdx.x % across * args.tile_cols + threadIdx.x % args.tile_cols;
    const int top = (blockIdx.x / across * (THREADS / args.tile_cols) +
                     threadIdx.x / args.tile_cols) * WALK;
    const size_t plane = static_cast<size_t>(image) * args.inputs + ci;
    const float* from = args.input + plane * pixels;
    const float a = args.input_affine ? args.input_affine[plane * 4] : 1.0f;
    const float b = args.input_affine ? args.input_affine[plane * 4 + 1] : 0.0f;
    const float* dy = args.dy + (static_cast<size_t>(image) * args.channels + first) * pixels;
    float sums[54];
#pragma unroll
    for (int q = 0; q < 54; ++q) sums[q] = 0.0f;
    if (j < args.cols && top < args.rows) {
        float window[3][3];
#pragma unroll
        for (int r = 1; r < 3; ++r)
#pragma unroll
            for (int k = 0; k < 3; ++k)
                window[r][k] = input_at(args, from, a, b, top + r - 2, j + k - 1);
        const int bottom = min(top + WALK, args.rows);
        for (int i = top; i < bottom; ++i) {
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                window[0][k] = window[1][k];
                window[1][k] = window[2][k];
                window[2][k] = input_at(args, from, a, b, i + 1, j + k - 1);
            }
#pragma unroll
            for (int c = 0; c < CO; ++c) {
                const float d =
                    c < count ? dy[c * pixels + static_cast<size_t>(i) * args.cols + j] : 0.0f;
#pragma unroll
                for (int k = 0; k < 9; ++k)
                    sums[c * 9 + k] = fmaf(d, window[k / 3][k % 3], sums[c * 9 + k]);
            }
        }
    }
    warp_sums<54>(sums, room + threadIdx.x / 32 * 54);
    __syncthreads();
    if (threadIdx.x < count * 9) {
        float sum = 0.0f;
        for (int w = 0; w < THREADS / 32; ++w) sum += room[w * 54 + threadIdx.x];
        const int c = first + threadIdx.x / 9;
        const size_t weights = static_cast<size_t>(args.channels) * args.inputs * 9;
        args.weight_parts[(static_cast<size_t>(image) * args.weight_tiles + blockIdx.x) * weights +
                          (static_cast<size_t>(c) * args.inputs + ci) * 9 + threadIdx.x % 9] = sum;
    }
}

// The same for a weight of any kernel: a block for each weight. Grid: weights, 1, maps x emitters.
extern "C" __global__ void weights_any(LayerArgs args) {
    SHARED_FLOATS(room);
    const int image = blockIdx.z, weight = blockIdx.x, area = args.kernel * args.kernel;
    const int ci = weight / area % args.inputs, co = weight / area / args.inputs;
    const int kh = weight % area / args.kernel, kw = weight % args.kernel;
    const int before = (args.kernel - 1) / 2;
    const size_t pixels = static_cast<size_t>(args.rows) * args.cols;
    const size_t plane = static_cast<size_t>(image) * args.inputs + ci;
    const float* from = args.input + plane * pixels;
    const float a = args.input_affine ? args.input_affine[plane * 4] : 1.0f;
    const float b = args.input_affine ? args.input_affine[plane * 4 + 1] : 0.0f;
    const float* dy = args.dy + (static_cast<size_t>(image) * args.channels + co) * pixels;
    double sums[2] = {0.0, 0.0};
    for (size_t at = threadIdx.x; at < pixels; at += THREADS) {
        const int i = static_cast<int>(at / args.cols), j = static_cast<int>(at % args.cols);
        sums[0] += dy[at] * input_at(args, from, a, b, i + kh - before, j + kw - before);
    }
    block_sums(sums, reinterpret_cast<double*>(room));
    if (threadIdx.x == 0) {
        args.weight_parts[static_cast<size_t>(image) * gridDim.x + weight] =
            static_cast<float>(sums[0]);
    }
}

// The gradient of every weight of a block, from its parts. One thread for each (map, weight).
extern "C" __global__ void sum_weights(LayerArgs args) {
    const int weights = args.channels * args.inputs * args.kernel * args.kernel;
    const int id = blockIdx.x * THREADS + threadIdx.x;
    if (id >= args.maps * weights) return;
    const int map = id / weights, weight = id % weights;
    const int parts = args.emitters * args.weight_tiles;
    const float* from = args.weight_parts + static_cast<size_t>(map) * parts * weights + weight;
    double sum = 0.0;
    for (int k = 0; k < parts; ++k) sum += from[static_cast<size_t>(k) * weights];
    args.grad[static_cast<size_t>(map) * args.parameters + args.conv + weight] =
        static_cast<float>(sum);
}

// Everything beyond the decoder's blocks.
struct LossArgs {
    float* params;
    float* latents;
    float* psd;
    float* best_params;
    float* best_latents;
    float* best_psd;
    float* moments;          // two for each unknown: parameters, latents, PSDs of all maps
    const float* grad;
    const float* latent_grad;
    const float* v;          // of the last block
    const float* affine;
    float* dlogit;           // maps x emitters x drawn pixels
    float* slf;              // slots x emitters, then its gradient
    float* slope;            // sensors x bands
    float* psd_parts;        // (map, emitter), part, band
    double* loss_parts;      // maps x chunks
    double* trace;
    Standing* standing;
    const float* rates;
    const int* slot_map;
    const int* slot_pixel;   // in the drawn image
    const int* slot_sensor;  // first sensor; one more than slots
    const int* sensor_slot;
    const int* map_sensor;   // first sensor; one more than maps
    const float* targets;    // sensors x bands; imitation: maps x emitters x cells
    const unsigned char* levels;
    const float* edges;
    const int* map_edge;     // first edge; one more than maps
    const float* offset;     // by map
    const float* sigma;
    double tolerance;
    float penalty_network;
    float penalty_latent;
    float penalty_psd;
    int maps;
    int emitters;
    int bands;
    int channels;
    int parameters;
    int latent;              // numbers in one latent
    int out;
    int slots;
    int chunks;              // of entries of a map whose losses are summed by one block
    int parts;               // of sensors for the PSDs' gradient
    int rows;
    int cols;
    int drawn_rows;
    int drawn_cols;
    int kind;
    int exponential;
    int both;
    int keeps_best;
    int iterations;
    int iteration;
    int trace_stride;
    int imitation;
};

__device__ __forceinline__ float logit_at(const LossArgs& args, int image, size_t pixel) {
    const float* out =
        args.params + static_cast<size_t>(image / args.emitters) * args.parameters + args.out;
    const size_t pixels = static_cast<size_t>(args.drawn_rows) * args.drawn_cols;
    float logit = 0.0f;
    for (int c = 0; c < args.channels; ++c) {
        const size_t plane = static_cast<size_t>(image) * args.channels + c;
        const float* affine = args.affine + plane * 4;
        logit = fmaf(out[c], fmaf(affine[0], args.v[plane * pixels + pixel], affine[1]), logit);
    }
    return logit;
}

// The SLFs at the sensors' cells. One thread for each (slot, emitter).
extern "C" __global__ void readout(LossArgs args) {
    const int id = blockIdx.x * THREADS + threadIdx.x;
    if (id >= args.slots * args.emitters) return;
    const int slot = id / args.emitters;
    const int image = args.slot_map[slot] * args.emitters + id % args.emitters;
    args.slf[id] = output_of(args.exponential, logit_at(args, image, args.slot_pixel[slot]));
}

// Loss and slope of every reading. Grid: chunks of THREADS entries, maps.
extern "C" __global__ void misfit(LossArgs args) {
    SHARED_FLOATS(room);
    const int map = blockIdx.y, first = args.map_sensor[map];
    const long long entries =
        static_cast<long long>(args.map_sensor[map + 1] - first) * args.bands;
    const long long at = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    double sums[2] = {0.0, 0.0};
    if (at < entries) {
        const int n = first + static_cast<int>(at / args.bands);
        const int band = static_cast<int>(at % args.bands);
        const float* slf = args.slf + static_cast<size_t>(args.sensor_slot[n]) * args.emitters;
        const float* psd = args.psd + static_cast<size_t>(map) * args.emitters * args.bands + band;
        float x = args.kind == POWER ? 0.0f : args.offset[map];
        for (int e = 0; e < args.emitters; ++e) x = fmaf(slf[e], psd[e * args.bands], x);
        const size_t entry = static_cast<size_t>(n) * args.bands + band;
        float slope;
        if (args.kind == LEVELS) {
            const int edge = args.map_edge[map];
            const Entry level = level_entry(args.levels[entry], args.edges + edge,
                                            args.map_edge[map + 1] - edge, args.sigma[map], x);
            sums[0] = level.loss;
            slope = level.slope;
        } else {
            sums[0] = squared_entry(args.kind, args.targets[entry], x, slope);
        }
        args.slope[entry] = slope;
    }
    block_sums(sums, reinterpret_cast<double*>(room));
    if (threadIdx.x == 0) {
        args.loss_parts[static_cast<size_t>(map) * args.chunks + blockIdx.x] = sums[0];
    }
}

// The gradient before the output function at the sensors' cells. A warp for each (slot, emitter).
extern "C" __global__ void sensor_back(LossArgs args) {
    const int id = (blockIdx.x * THREADS + threadIdx.x) / 32, lane = lane_id();
    if (id >= args.slots * args.emitters) return;
    const int slot = id / args.emitters, e = id % args.emitters, map = args.slot_map[slot];
    const float* psd =
        args.psd + (static_cast<size_t>(map) * args.emitters + e) * args.bands;
    float sum[1] = {0.0f};
    for (int n = args.slot_sensor[slot]; n < args.slot_sensor[slot + 1]; ++n) {
        for (int band = lane; band < args.bands; band += 32) {
            sum[0] = fmaf(args.slope[static_cast<size_t>(n) * args.bands + band], psd[band],
                          sum[0]);
        }
    }
    share_sums<1, 16>(sum, lane);
    if (lane == 0) {
        const size_t pixels = static_cast<size_t>(args.drawn_rows) * args.drawn_cols;
        args.dlogit[(static_cast<size_t>(map) * args.emitters + e) * pixels +
                    args.slot_pixel[slot]] =
            sum[0] * output_slope(args.exponential, args.slf[id]);
    }
}

// Sensors of one part of the PSDs' gradient.
constexpr int PSD_SENSORS = 128;

// Parts of the PSDs' gradient: threads are bands. Grid: parts, emitters, maps.
extern "C" __global__ void psd_back(LossArgs args) {
    const int map = blockIdx.z, e = blockIdx.y;
    const int first = args.map_sensor[map] + blockIdx.x * PSD_SENSORS;
    const int end = min(first + PSD_SENSORS, args.map_sensor[map + 1]);
    float* to = args.psd_parts +
                ((static_cast<size_t>(map) * args.emitters + e) * args.parts + blockIdx.x) *
                    args.bands;
    for (int band = threadIdx.x; band < args.bands; band += blockDim.x) {
        float sum = 0.0f;
        for (int n = first; n < end; ++n) {
            sum = fmaf(args.slope[static_cast<size_t>(n) * args.bands + band],
                       args.slf[static_cast<size_t>(args.sensor_slot[n]) * args.emitters + e], sum);
        }
        to[band] = sum;
    }
}

// Imitation: loss and gradient at every drawn pixel. Grid: chunks, emitters, maps.
extern "C" __global__ void imitation_misfit(LossArgs args) {
    SHARED_FLOATS(room);
    const int map = blockIdx.z, image = map * args.emitters + blockIdx.y;
    const size_t pixels = static_cast<size_t>(args.drawn_rows) * args.drawn_cols;
    const size_t at = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    double sums[2] = {0.0, 0.0};
    if (at < pixels) {
        const int row = static_cast<int>(at / args.drawn_cols);
        const int col = static_cast<int>(at % args.drawn_cols);
        float d = 0.0f;
        if (row < args.rows && col < args.cols) {
            const float s = output_of(args.exponential, logit_at(args, image, at));
            const float power = s + args.offset[map];
            const float target =
                args.targets[(static_cast<size_t>(image) * args.rows + row) * args.cols + col];
            const float miss = __logf(power) - target;
            sums[0] = miss * miss;
            d = __fdividef(2.0f * miss, power) * output_slope(args.exponential, s);
        }
        args.dlogit[static_cast<size_t>(image) * pixels + at] = d;
    }
    block_sums(sums, reinterpret_cast<double*>(room));
    if (threadIdx.x == 0) {
        args.loss_parts[(static_cast<size_t>(map) * args.emitters + blockIdx.y) * args.chunks +
                        blockIdx.x] = sums[0];
    }
}

// The loss of every map, and whether its descent is over. A block for each map.
extern "C" __global__ void stand(LossArgs args) {
    SHARED_FLOATS(room);
    const int map = blockIdx.x;
    Standing now = args.standing[map];
    double sums[2] = {0.0, 0.0};
    const int chunks = args.chunks * (args.imitation ? args.emitters : 1);
    for (int k = threadIdx.x; k < chunks; k += THREADS) {
        sums[0] += args.loss_parts[static_cast<size_t>(map) * chunks + k];
    }
    auto squares = [&](const float* values, int count, float penalty) {
        const float* own = values + static_cast<size_t>(map) * count;
        for (int k = threadIdx.x; k < count; k += THREADS) {
            sums[1] += static_cast<double>(penalty) * own[k] * own[k];
        }
    };
    if (!args.imitation) {
        squares(args.params, args.parameters, args.penalty_network);
        squares(args.latents, args.emitters * args.latent, args.penalty_latent);
        squares(args.psd, args.emitters * args.bands, args.penalty_psd);
    }
    block_sums(sums, reinterpret_cast<double*>(room));
    if (threadIdx.x != 0 || now.over) return;
    const double total = sums[0] + sums[1];
    now.improved = 0;
    if (!isfinite(total)) {
        now.over = 2;
    } else {
        const double change =
            now.done ? fabs(now.last - total) : static_cast<double>(__int_as_float(0x7f800000));
        const double relative = change / (now.done ? fabs(now.last) : 1.0);
        now.calm = relative < args.tolerance ? now.calm + 1 : 0;
        now.last = total;
        args.trace[static_cast<size_t>(map) * args.trace_stride + now.done] = total;
        now.done += 1;
        if (total < now.least) {
            now.least = total;
            now.improved = 1;
        }
        now.over = args.both ? (args.iteration >= args.iterations && change < args.tolerance)
                             : now.calm >= 5;
    }
    args.standing[map] = now;
}

// The step, and the iterate of least loss before it. One thread for each unknown of a map; maps in
// y.
extern "C" __global__ void take_step(LossArgs args) {
    const int map = blockIdx.y;
    const Standing now = args.standing[map];
    const int latents = args.emitters * args.latent;
    const int psds = args.imitation ? 0 : args.emitters * args.bands;
    const int count = args.parameters + latents + psds;
    const int id = blockIdx.x * THREADS + threadIdx.x;
    if (id >= count || now.over == 2) return;
    const float* rates = args.rates + args.iteration * 3;
    float *at, *best, gradient, size = rates[0];
    if (id < args.parameters) {
        const size_t k = static_cast<size_t>(map) * args.parameters + id;
        at = args.params + k;
        best = args.best_params + k;
        gradient = fmaf(2.0f * args.penalty_network, *at, args.grad[k]);
    } else if (id < args.parameters + latents) {
        const size_t k = static_cast<size_t>(map) * latents + id - args.parameters;
        at = args.latents + k;
        best = args.best_latents + k;
        gradient = fmaf(2.0f * args.penalty_latent, *at, args.latent_grad[k]);
    } else {
        const int own = id - args.parameters - latents;
        const size_t k = static_cast<size_t>(map) * psds + own;
        at = args.psd + k;
        best = args.best_psd + k;
        size = rates[2];
        const float* from = args.psd_parts +
                            (static_cast<size_t>(map) * args.emitters + own / args.bands) *
                                args.parts * args.bands + own % args.bands;
        gradient = 2.0f * args.penalty_psd * *at;
        for (int q = 0; q < args.parts; ++q) gradient += from[static_cast<size_t>(q) * args.bands];
    }
    if (args.keeps_best && now.improved) *best = *at;
    if (now.over) return;
    float* moments = args.moments + (static_cast<size_t>(map) * count + id) * 2;
    const float moved = adam(*at, gradient, moments[0], moments[1], size, rates[1]);
    *at = id < args.parameters + latents ? moved : fmaxf(moved, 0.0f);
}
