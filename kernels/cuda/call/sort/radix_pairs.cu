#include "kernels/cuda/call/sort/radix.cuh"

cudaError_t ad_cuda_radix_pairs32(void *memory, size_t *size, ad_radix_pairs *p, int n, cudaStream_t stream) {
    return ad_radix_pairs_row<uint32_t>(memory, size, p, n, stream);
}
cudaError_t ad_cuda_radix_pairs64(void *memory, size_t *size, ad_radix_pairs *p, int n, cudaStream_t stream) {
    return ad_radix_pairs_row<uint64_t>(memory, size, p, n, stream);
}
