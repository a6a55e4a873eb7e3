/* Real random numbers by rejection. */
#include "kernels/cuda/call/random/random.cuh"

#define AD_DISTRIBUTION(id, name, source, loops, ...) AD_ENTRY_##source##_##loops(id)
#define AD_ENTRY_BLOCK_REAL(id)
#define AD_ENTRY_BLOCK_BITS(id)
#define AD_ENTRY_BLOCK_WHOLE(id)
#define AD_ENTRY_OWN_COUNT(id)
#define AD_ENTRY_OWN_REAL(id)                                                                                 \
    case id:                                                                                                  \
        if (loop == AD_FLOAT32) ad::random_own_each<id, float><<<blocks, AD_RANDOM_THREADS, 0, stream>>>(*p); \
        else ad::random_own_each<id, double><<<blocks, AD_RANDOM_THREADS, 0, stream>>>(*p);                   \
        return true;

bool ad_cuda_random_own(const ad_random_places *p, int loop, int blocks, cudaStream_t stream) {
    switch (p->id) {
#include "protocol/distribution.def"
    default: return false;
    }
}
