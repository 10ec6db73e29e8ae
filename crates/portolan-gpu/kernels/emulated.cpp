// The kernels as a library for the tests: one function that launches any of them by name.
#include "common.cuh"

namespace resident {
#include "resident.cu"
}
namespace layered {
#include "layered.cu"
}

extern "C" int portolan_launch(const char* name, const int* grid, int threads, int cluster,
                               size_t shared_bytes, const void* bytes) {
    const auto run = [&](auto kernel, auto args) {
        memcpy(&args, bytes, sizeof args);
        emulated::launch({grid[0], grid[1], grid[2]}, threads, std::max(cluster, 1), shared_bytes,
                         [=] { kernel(args); });
        return 0;
    };
#define KERNEL(kernel, args) \
    if (!strcmp(name, strrchr(#kernel, ':') + 1)) return run(kernel, args{});
    KERNEL(resident::fit_up_to_4, resident::FitArgs)
    KERNEL(resident::fit_up_to_8, resident::FitArgs)
    KERNEL(resident::imitate_up_to_4, resident::FitArgs)
    KERNEL(resident::imitate_up_to_8, resident::FitArgs)
    KERNEL(layered::convolve, layered::LayerArgs)
    KERNEL(layered::upsample, layered::LayerArgs)
    KERNEL(layered::normalise, layered::LayerArgs)
    KERNEL(layered::tally, layered::LayerArgs)
    KERNEL(layered::way_back, layered::LayerArgs)
    KERNEL(layered::upsample_back, layered::LayerArgs)
    KERNEL(layered::convolve_back, layered::LayerArgs)
    KERNEL(layered::weights_3x3, layered::LayerArgs)
    KERNEL(layered::weights_any, layered::LayerArgs)
    KERNEL(layered::sum_weights, layered::LayerArgs)
    KERNEL(layered::readout, layered::LossArgs)
    KERNEL(layered::misfit, layered::LossArgs)
    KERNEL(layered::sensor_back, layered::LossArgs)
    KERNEL(layered::psd_back, layered::LossArgs)
    KERNEL(layered::imitation_misfit, layered::LossArgs)
    KERNEL(layered::stand, layered::LossArgs)
    KERNEL(layered::take_step, layered::LossArgs)
    return 1;
}
