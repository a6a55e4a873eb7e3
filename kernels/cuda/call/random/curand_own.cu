/* Numbers of cuRAND's generators: the distributions that only the order of the device API has. */
#include "kernels/cuda/call/random/curand.cuh"

using namespace ad;

bool ad_cuda_curand_device(const ad_curand_argument *a, int generator, int loop, cudaStream_t stream) {
    switch (a->places.id) {
#define HOST(name, loops, generators)
#define DEVICE(name, loops, generators) \
    case AD_RANDOM_##name:              \
        return curand_launch<AD_RANDOM_##name, generators, loops>(a, generator, loop, stream);
#define AD_CURAND(name, loops, order, generators) order(name, loops, AD_CURAND_##generators)
#include "protocol/curand.def"
#undef AD_CURAND
#undef DEVICE
#undef HOST
    default: return false;
    }
}
