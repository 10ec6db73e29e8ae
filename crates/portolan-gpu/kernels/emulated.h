// Enough of CUDA to run the kernels on a processor, for tests where there is no device. Every
// thread is a fibre; fibres switch where threads wait for each other, so a run is deterministic.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>
#include <ucontext.h>

using std::isfinite;
using std::isnan;
using std::max;
using std::min;

struct float4 { float x, y, z, w; };
struct Three { int x, y, z; };

namespace emulated {

struct Barrier {
    int members = 0, arrived = 0;
    long generation = 0;
};

struct Block {
    Three index;
    std::vector<float> shared;
    std::vector<Barrier> warps;
    std::vector<float> exchange;
    Barrier barrier;
};

struct Fibre {
    ucontext_t context;
    Block* block;
    Three thread;
    long arrived = 0;    // generation of the cluster's barrier that it waits for
    bool done = false;
};

inline std::vector<Fibre> fibres;
// Kept from block to block: making them takes longer than most blocks run.
inline std::vector<std::unique_ptr<char[]>> stacks;
constexpr size_t STACK = 128 << 10;
inline std::vector<Block> blocks;
inline Barrier cluster;
inline Three grid, block_size;
inline size_t running = 0;
inline ucontext_t home;
inline std::function<void()> work;

inline void yield() {
    const size_t from = running;
    size_t to = from;
    do to = (to + 1) % fibres.size();
    while (fibres[to].done && to != from);
    if (to == from) return;
    running = to;
    swapcontext(&fibres[from].context, &fibres[to].context);
}

inline void meet(Barrier& barrier) {
    const long generation = barrier.generation;
    if (++barrier.arrived == barrier.members) {
        barrier.arrived = 0;
        ++barrier.generation;
        return;
    }
    while (barrier.generation == generation) yield();
}

inline void enter() {
    work();
    fibres[running].done = true;
    for (size_t k = 0; k < fibres.size(); ++k) {
        const size_t to = (running + k) % fibres.size();
        if (!fibres[to].done) {
            running = to;
            setcontext(&fibres[to].context);
        }
    }
    setcontext(&home);
}

// Runs a grid; the blocks of `cluster_size` neighbours in x run together.
inline void launch(Three grid_size, int threads, int cluster_size, size_t shared_bytes,
                   std::function<void()> kernel) {
    grid = grid_size;
    block_size = {threads, 1, 1};
    work = std::move(kernel);
    for (int z = 0; z < grid.z; ++z)
    for (int y = 0; y < grid.y; ++y)
    for (int x = 0; x < grid.x; x += cluster_size) {
        blocks.assign(cluster_size, Block{});
        fibres = std::vector<Fibre>(static_cast<size_t>(cluster_size) * threads);
        cluster = {cluster_size * threads, 0, 0};
        for (int b = 0; b < cluster_size; ++b) {
            Block& block = blocks[b];
            block.index = {x + b, y, z};
            // What nobody wrote must not look like a number.
            block.shared.assign(shared_bytes / 4 + 4, NAN);
            block.warps.assign((threads + 31) / 32, Barrier{});
            for (int w = 0; w < (threads + 31) / 32; ++w)
                block.warps[w].members = std::min(32, threads - 32 * w);
            block.exchange.assign(threads + 32, 0.0f);
            block.barrier.members = threads;
            for (int t = 0; t < threads; ++t) {
                Fibre& fibre = fibres[static_cast<size_t>(b) * threads + t];
                fibre.block = &block;
                fibre.thread = {t, 0, 0};
                const size_t place = static_cast<size_t>(b) * threads + t;
                if (place == stacks.size()) stacks.emplace_back(new char[STACK]);
                getcontext(&fibre.context);
                fibre.context.uc_stack.ss_sp = stacks[place].get();
                fibre.context.uc_stack.ss_size = STACK;
                fibre.context.uc_link = &home;
                makecontext(&fibre.context, enter, 0);
            }
        }
        running = 0;
        swapcontext(&home, &fibres[0].context);
    }
}

inline Fibre& self() { return fibres[running]; }

inline float exchanged(float value, int lane) {
    Block& block = *self().block;
    const int t = self().thread.x;
    Barrier& warp = block.warps[t / 32];
    block.exchange[t] = value;
    meet(warp);
    const float other = block.exchange[t / 32 * 32 + (lane & 31)];
    meet(warp);
    return other;
}

}  // namespace emulated

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__ inline
#define threadIdx (emulated::self().thread)
#define blockIdx (emulated::self().block->index)
#define gridDim (emulated::grid)
#define blockDim (emulated::block_size)
#define SHARED_FLOATS(name) \
    float* const name = reinterpret_cast<float*>( \
        (reinterpret_cast<size_t>(emulated::self().block->shared.data()) + 15) / 16 * 16)

inline void __syncthreads() { emulated::meet(emulated::self().block->barrier); }
inline void __syncwarp() { emulated::meet(emulated::self().block->warps[threadIdx.x / 32]); }
inline int lane_id() { return threadIdx.x & 31; }
inline float shuffle(float value, int lane) { return emulated::exchanged(value, lane); }
inline float shuffle_xor(float value, int mask) {
    return emulated::exchanged(value, (threadIdx.x & 31) ^ mask);
}
inline int shuffle_int(int value, int lane) {
    float bits;
    memcpy(&bits, &value, 4);
    bits = shuffle(bits, lane);
    memcpy(&value, &bits, 4);
    return value;
}
inline void cluster_arrive() {
    auto& barrier = emulated::cluster;
    emulated::self().arrived = barrier.generation;
    if (++barrier.arrived == barrier.members) {
        barrier.arrived = 0;
        ++barrier.generation;
    }
}
inline void cluster_wait() {
    while (emulated::cluster.generation == emulated::self().arrived) emulated::yield();
}
inline void cluster_sync() {
    cluster_arrive();
    cluster_wait();
}
inline int cluster_rank() {
    return static_cast<int>(emulated::self().block - emulated::blocks.data());
}
inline float* remote_place(const float* at, int rank) {
    const auto aligned = [](emulated::Block& block) {
        return (reinterpret_cast<size_t>(block.shared.data()) + 15) / 16 * 16;
    };
    const size_t offset =
        reinterpret_cast<size_t>(at) - aligned(*emulated::self().block);
    return reinterpret_cast<float*>(aligned(emulated::blocks[rank]) + offset);
}
inline float remote_load(const float* at, int rank) { return *remote_place(at, rank); }
inline void remote_store(float* at, int rank, float value) { *remote_place(at, rank) = value; }
inline float __int_as_float(int bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
inline float __logf(float x) { return logf(x); }
inline float __expf(float x) { return expf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float erfcxf(float x) {
    if (x < 10.0f) return static_cast<float>(exp(double(x) * x) * erfc(double(x)));
    const double square = double(x) * x;
    return static_cast<float>(0.5641895835477563 / x * (1.0 - 0.5 / square + 0.75 / square / square));
}
