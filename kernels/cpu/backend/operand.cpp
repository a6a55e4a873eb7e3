#include "kernels/cpu/backend/operand.h"

ad_cpu_cast ad_cpu_cast_get(const ad_cpu_kernels *k, int from, int through, int to) {
    static const uint8_t size[] = {
#define AD_DTYPE(id, NAME, name, bytes, kind, letter) bytes,
#include "protocol/dtype.def"
#undef AD_DTYPE
    };
    if (from == through || through == to) return {k->cast[from][to], nullptr, 0};
    return {k->cast[from][through], k->cast[through][to], size[through]};
}

void ad_cpu_cast_run(const ad_cpu_cast *c, void *to, int64_t to_stride, const void *from, int64_t from_stride,
                     int64_t n) {
    constexpr int64_t BLOCK = 256;
    alignas(16) char middle[BLOCK * 16];
    if (!c->second) return c->first(to, to_stride, from, from_stride, n);
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = n - i < BLOCK ? n - i : BLOCK;
        c->first(middle, c->middle_size, static_cast<const char *>(from) + i * from_stride, from_stride, m);
        c->second(static_cast<char *>(to) + i * to_stride, to_stride, middle, c->middle_size, m);
    }
}

void ad_cpu_writes(const ad_op *op, ad_run *run) {
    for (int i = 0; i < op->nout; i++)
        if (op->operand[i].desc.form == AD_VIEW) run->wrote = true;
}
