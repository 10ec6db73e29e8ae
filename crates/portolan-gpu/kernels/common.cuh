// What both engines share: how blocks of a cluster talk, sums over warps in a fixed order, and
// the losses. Compiled by NVRTC for a device, or by a C++ compiler for the emulator of the tests.
#pragma once

#ifdef PORTOLAN_EMULATED
#include "emulated.h"
#else
#define SHARED_FLOATS(name) extern __shared__ float name[]

__device__ __forceinline__ int lane_id() { return threadIdx.x & 31; }
__device__ __forceinline__ float shuffle_xor(float value, int mask) {
    return __shfl_xor_sync(0xffffffffu, value, mask);
}
__device__ __forceinline__ float shuffle(float value, int lane) {
    return __shfl_sync(0xffffffffu, value, lane);
}
__device__ __forceinline__ int shuffle_int(int value, int lane) {
    return __shfl_sync(0xffffffffu, value, lane);
}

#if __CUDA_ARCH__ >= 900
// All threads of all blocks of the cluster meet; what they wrote is seen by the others.
__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}
__device__ __forceinline__ void cluster_sync() {
    cluster_arrive();
    cluster_wait();
}
__device__ __forceinline__ int cluster_rank() {
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ __forceinline__ unsigned remote_address(const float* at, int rank) {
    unsigned own = static_cast<unsigned>(__cvta_generic_to_shared(at)), there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(rank));
    return there;
}
// The same place of shared memory in another block of the cluster.
__device__ __forceinline__ float remote_load(const float* at, int rank) {
    float value;
    asm volatile("ld.shared::cluster.f32 %0, [%1];"
                 : "=f"(value) : "r"(remote_address(at, rank)) : "memory");
    return value;
}
__device__ __forceinline__ void remote_store(float* at, int rank, float value) {
    asm volatile("st.shared::cluster.f32 [%0], %1;"
                 :: "r"(remote_address(at, rank)), "f"(value) : "memory");
}
#endif
#endif

namespace portolan {

// Sums over the lanes of a warp that differ in the bits from MASK down to STOP, in which lanes share
// out the values: at every level N values in each lane become half as many sums over two lanes.
template <int N, int MASK, int STOP = 1>
__device__ __forceinline__ void share_sums(float* values, int lane) {
    constexpr int HALF = (N + 1) / 2;
    const bool upper = lane & MASK;
#pragma unroll
    for (int q = 0; q < HALF; ++q) {
        if (q + HALF < N) {
            const float send = upper ? values[q] : values[q + HALF];
            const float keep = upper ? values[q + HALF] : values[q];
            values[q] = keep + shuffle_xor(send, MASK);
        } else {
            values[q] += shuffle_xor(values[q], MASK);
        }
    }
    if constexpr (MASK > STOP) share_sums<HALF, MASK / 2, STOP>(values, lane);
}

// Which of the N sums lane `lane` holds at place q after share_sums.
template <int N, int MASK, int STOP = 1>
__device__ __forceinline__ int shared_index(int q, int lane) {
    constexpr int HALF = (N + 1) / 2;
    int index = q;
    if constexpr (MASK > STOP) index = shared_index<HALF, MASK / 2, STOP>(q, lane);
    return (lane & MASK) && index + HALF < N ? index + HALF : index;
}

// Sums N values over the 32 lanes of a warp into out[0..N]. N is 1 to 64.
template <int N>
__device__ __forceinline__ void warp_sums(float (&values)[N], float* out) {
    const int lane = lane_id();
    share_sums<N, 16>(values, lane);
    out[shared_index<N, 16>(0, lane)] = values[0];
    if constexpr (N > 32) out[shared_index<N, 16>(1, lane)] = values[1];
}

constexpr float LN_SQRT_TAU = 0.91893853320467274f;
constexpr float INV_SQRT_2 = 0.70710678118654752f;
constexpr float SQRT_2_OVER_PI = 0.79788456080286536f;

// ln P of a bin and (phi(low) - phi(high)) / P, in units of sigma, for a mean of 0: the branches
// of `likelihood/bin.rs`, in single precision.
struct Bin {
    float log_probability;
    float score;
};

__device__ inline Bin tail_bin(float low, float high, float width) {
    const float exponent = -width * (low + 0.5f * width);
    const float fade = expf(exponent);
    const float far = fade > 0.0f ? fade * erfcxf(high * INV_SQRT_2) : 0.0f;
    const float mass = erfcxf(low * INV_SQRT_2) - far;
    return {logf(0.5f * mass) - 0.5f * low * low, -expm1f(exponent) * SQRT_2_OVER_PI / mass};
}

__device__ inline Bin bin_between(float low, float high, float width) {
    const float middle = 0.5f * (low + high);
    if (width * fmaxf(fabsf(middle), 1.0f) < 0.5f) {
        // Narrower than the density varies: six-point Gauss-Legendre over the bin.
        const float half = 0.5f * width;
        const float at[3] = {0.2386191861f, 0.6612093865f, 0.9324695142f};
        const float weight[3] = {0.4679139346f, 0.3607615730f, 0.1713244924f};
        float integral = 0.0f;
        for (int k = 0; k < 3; ++k) {
            const float t = half * at[k];
            integral += weight[k] * expf(-0.5f * t * t) * coshf(middle * t);
        }
        const float mass = width * integral;
        const float edge = 2.0f * expf(-0.5f * half * half);
        return {logf(mass) - 0.5f * middle * middle - LN_SQRT_TAU,
                edge * sinhf(middle * half) / mass};
    }
    if (low > 0.0f) return tail_bin(low, high, width);
    if (high < 0.0f) {
        Bin bin = tail_bin(-high, -low, width);
        bin.score = -bin.score;
        return bin;
    }
    const float outside = 0.5f * (erfcf(high * INV_SQRT_2) + erfcf(-low * INV_SQRT_2));
    const float inside = outside < 0.5f
        ? 1.0f - outside
        : 0.5f * (erff(high * INV_SQRT_2) + erff(-low * INV_SQRT_2));
    const float below = expf(-0.5f * low * low - LN_SQRT_TAU);
    const float above = expf(-0.5f * high * high - LN_SQRT_TAU);
    return {outside < 0.5f ? log1pf(-outside) : logf(inside), (below - above) / inside};
}

// How far a map's descent is; kept between launches.
struct Standing {
    double last;
    double least;
    int calm;
    int done;        // iterations whose loss is in the trace
    int over;        // 1: ended, 2: diverged
    int improved;    // the loss before this step is the least so far
};

enum Kind { LN_POWER = 0, POWER = 1, LEVELS = 2 };

// What one reading adds to the loss, and its slope in the power x that the model gives there.
__device__ __forceinline__ float squared_entry(int kind, float target, float x, float& slope) {
    const bool missing = isnan(target);
    const float miss = missing ? 0.0f : (kind == POWER ? x : __logf(x)) - target;
    slope = missing ? 0.0f : kind == POWER ? 2.0f * miss : __fdividef(2.0f * miss, x);
    return miss * miss;
}

struct Entry {
    float loss;
    float slope;
};

__device__ __noinline__ Entry level_entry(
    int level, const float* edges, int edge_count, float sigma, float x) {
    if (level == 255) return {0.0f, 0.0f};
    const float infinity = __int_as_float(0x7f800000);
    const float mean = logf(x), per_sigma = 1.0f / sigma;
    const int at = level < edge_count ? level : edge_count;
    const float lower = at == 0 ? -infinity : edges[at - 1];
    const float upper = at == edge_count ? infinity : edges[at];
    const Bin bin = bin_between(
        (lower - mean) * per_sigma, (upper - mean) * per_sigma, (upper - lower) * per_sigma);
    return {-bin.log_probability, -bin.score * per_sigma / x};
}

__device__ __forceinline__ float output_of(bool exponential, float logit) {
    const float power = __expf(exponential ? logit : -logit);
    return exponential ? power : __fdividef(1.0f, 1.0f + power);
}
__device__ __forceinline__ float output_slope(bool exponential, float s) {
    return exponential ? s : s * (1.0f - s);
}

// Adam (Kingma and Ba) with the corrections of the step in `size` and `scale`.
__device__ __forceinline__ float adam(
    float at, float gradient, float& first, float& second, float size, float scale) {
    first = 0.9f * first + 0.1f * gradient;
    second = 0.999f * second + 0.001f * gradient * gradient;
    return at - size * first / (sqrtf(second) * scale + 1e-8f);
}

}  // namespace portolan
