/* Running sums and products: which kernel, over what. */
#include "kernels/call.h"
#include "kernels/cuda/call/scan/plan.h"
#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/reduce/plan.h"
#include "protocol/rows_call.h"
#include "protocol/rows_request.h"
#include "protocol/tables.h"

namespace {

using namespace ad;

constexpr int64_t LONG = 4096; /* elements from which a lane is divided among blocks */
constexpr int64_t SHORT = 8;   /* up to which its strides do not matter */
constexpr int64_t BESIDE = 8;  /* lanes side by side from which they are read together */
constexpr int WARPS = AD_SCAN_THREADS / 32;

struct plan {
    ad_call *call;
    ad_scan_kernels kernels;
    ad_scan scan;
};

int64_t pieces(int64_t n, int64_t of) { return (n + of - 1) / of; }

int launch(plan *p, const void *kernel, int64_t blocks) {
    if (blocks > INT32_MAX) return ad__fault(p->call->fault, AD_E_UNSUPPORTED, "a running sum of too many lanes");
    p->call->run->wrote = true;
    void *arguments[] = {&p->scan};
    return ad_cuda_status(
        cudaLaunchKernel(kernel, dim3(unsigned(blocks)), dim3(AD_SCAN_THREADS), arguments, 0, p->call->stream->cuda),
        "a running sum", p->call->fault);
}

int make_messages(plan *p, int64_t places) {
    if (p->scan.tiles == 1) return 0;
    p->scan.messages = static_cast<char *>(ad_call_workspace(p->call, uint64_t(places * p->kernels.message)));
    p->scan.tag = ad_fold_tag();
    return !p->scan.messages ? AD_E_MEMORY : 0;
}

uint8_t log2_up(int64_t n) {
    uint8_t r = 0;
    while (int64_t(1) << r < n) r++;
    return r;
}

/* Lanes for each warp, or short ones for each few threads of one. Both give the number of blocks. */
int64_t lay_rows(ad_scan *s, const ad_scan_kernels *kernels) {
    const int64_t vectors = pieces(s->n, kernels->width);
    s->log_row = log2_up(vectors < 32 ? vectors : 32);
    s->log_span = log2_up(pieces(vectors, 32));
    if (1 << s->log_span > AD_SCAN_ROW_LOADS) s->log_span = log2_up(AD_SCAN_ROW_LOADS);
    const int64_t of_warp = (AD_SCAN_ROW_LOADS >> s->log_span) * (32 >> s->log_row);
    return pieces(s->lanes, of_warp * WARPS);
}
int64_t lay_tiles(ad_scan *s, const ad_scan_kernels *kernels) {
    s->tiles = pieces(s->n, kernels->tile);
    return s->lanes * s->tiles;
}

/* Elements of a lane lie next to each other. */
int scan_contiguous(plan *p) {
    ad_scan *s = &p->scan;
    if (s->n < LONG) return launch(p, p->kernels.rows, lay_rows(s, &p->kernels));
    const int64_t blocks = lay_tiles(s, &p->kernels);
    int status = make_messages(p, blocks);
    return status ? status : launch(p, p->kernels.tiled, blocks);
}

/* Tell whether `side` can read its lanes as 8 bytes; if so, they are counted as such. */
bool take_side(plan *p, const array &out, const array &x) {
    ad_scan *s = &p->scan;
    ad_fold_axis *a = &s->lane[0];
    const int64_t each = p->kernels.lanes_of_thread;
    if (!p->kernels.side || s->nlane == 0 || a->in != itemsize(x.dtype) || a->out != itemsize(out.dtype)) return false;
    int64_t all = int64_t(reinterpret_cast<uintptr_t>(s->in)) | int64_t(reinterpret_cast<uintptr_t>(s->out)) |
                  s->in_step | s->out_step;
    for (int i = 1; i < s->nlane; i++) all |= s->lane[i].in | s->lane[i].out;
    if (all % 8 != 0 || a->size % each != 0) return false;
    s->lanes /= each;
    ad_fold_shrink(a, each);
    return true;
}

/* Lanes lie next to each other, or are short. */
int scan_beside(plan *p, const array &out, const array &x) {
    ad_scan *s = &p->scan;
    const bool side = take_side(p, out, x);
    int rows = AD_SCAN_THREADS / 32;
    s->log_x = 5;
    for (; rows > 1 && s->n <= int64_t(rows) / 2 * p->kernels.rows_of_thread; rows /= 2) s->log_x++;
    s->groups = pieces(s->lanes, int64_t(1) << s->log_x);
    s->tiles = pieces(s->n, int64_t(rows) * p->kernels.rows_of_thread);
    int status = make_messages(p, (s->tiles * s->groups << s->log_x) * (side ? p->kernels.lanes_of_thread : 1));
    return status ? status : launch(p, side ? p->kernels.side : p->kernels.across, s->tiles * s->groups);
}

bool has_contiguous(const array &a, int axis) { return a.stride[axis] == itemsize(a.dtype) || a.shape[axis] == 1; }

/* Scan from x to out as they lie. False: they lie so badly that copies are better. */
bool scan_strided(plan *p, const array &out, const array &x, int axis, int *status) {
    ad_scan *s = &p->scan;
    walk<2> lanes = walk_of(x, out, axis);
    if (!ad_fold_axes(&lanes, s->lane, &s->nlane)) return false;
    s->in = x.data, s->out = out.data;
    s->n = x.shape[axis], s->in_step = x.stride[axis], s->out_step = out.stride[axis];
    s->lanes = lanes.count;
    s->tiles = 1;
    if (has_contiguous(x, axis) && has_contiguous(out, axis)) *status = scan_contiguous(p);
    else if (s->n <= SHORT || lanes.length() >= BESIDE) *status = scan_beside(p, out, x);
    else return false;
    return true;
}

array axis_last(const array &a, int axis) {
    array r = a;
    for (int i = axis; i + 1 < a.ndim; i++) r.shape[i] = a.shape[i + 1], r.stride[i] = a.stride[i + 1];
    r.shape[a.ndim - 1] = a.shape[axis];
    r.stride[a.ndim - 1] = a.stride[axis];
    return r;
}

int scan_arrays(plan *p, const array &out, const array &x, int axis) {
    int status = 0;
    if (scan_strided(p, out, x, axis, &status)) return status;
    const array from = axis_last(x, axis), to = axis_last(out, axis);
    array packed, made = to;
    if ((status = ad_call_packed(p->call, &from, from.dtype, 0, &packed))) return status;
    const int64_t size = pack(&made);
    made.data = static_cast<char *>(ad_call_workspace(p->call, uint64_t(size)));
    if (!made.data) return AD_E_MEMORY;
    if (!scan_strided(p, made, packed, packed.ndim - 1, &status))
        return ad__fault(p->call->fault, AD_E_INTERNAL, "a packed array cannot be scanned");
    return status ? status : ad_call_copy(p->call, &to, &made);
}

int scan_call(ad_call *c, ad_scan_kernels (*kernels)(int input, int loop), bool skip) {
    plan p = {};
    array x, out;
    const ad_operand *source = &c->op->operand[1];
    const int loop = c->op->loop;
    int type = source->is_scalar ? loop : source->desc.dtype, status;
    p.call = c;
    p.kernels = kernels(type, loop);
    if (!p.kernels.tiled) p.kernels = kernels(type = loop, loop);
    if (!p.kernels.tiled) return ad__fault(c->fault, AD_E_INTERNAL, "a running sum has no loop for this type");
    if ((status = ad_call_input(c, 0, type, &x)) || (status = ad_call_output(c, 0, loop, &out))) return status;
    if (count(out) == 0) return 0;
    p.scan.skip = skip;
    status = scan_arrays(&p, out, x, int(c->op->param[0].as.i));
    return status ? status : ad_call_finish(c, 0, &out);
}

bool is_scan(const ad_op *op, bool *product) {
    *product = op->row == AD_CALL_cumprod || op->row == AD_CALL_nancumprod;
    return *product || op->row == AD_CALL_cumsum || op->row == AD_CALL_nancumsum;
}

} // namespace

bool ad_scan_lay(const ad_op *op, ad_scan_layout *to) {
    array out = view_of(op->operand[0]), x = view_of(op->operand[1]);
    const int axis = int(op->param[0].as.i);
    *to = {};
    to->input = x.dtype;
    to->loop = op->loop;
    if (op->opcode != AD_REQ_CALL || !is_scan(op, &to->product) || out.dtype != to->loop) return false;
    ad_scan_kernels (*kernels)(int, int) = to->product ? ad_scan_product : ad_scan_sum;
    ad_scan_kernels k = kernels(to->input, to->loop);
    if (!k.tiled) k = kernels(to->input = to->loop, to->loop);
    x.data = nullptr;
    x.dtype = to->input;
    pack(&x);
    ad_scan *s = &to->scan;
    const walk<2> lanes = walk_of(x, out, axis);
    if (!k.tiled || !has_contiguous(x, axis) || !has_contiguous(out, axis) || !ad_fold_axes(&lanes, s->lane, &s->nlane))
        return false;
    s->out = out.data;
    s->n = x.shape[axis], s->in_step = x.stride[axis], s->out_step = out.stride[axis];
    s->lanes = lanes.count;
    s->tiles = 1;
    s->skip = op->row == AD_CALL_nancumsum || op->row == AD_CALL_nancumprod;
    to->width = k.width;
    to->way = s->n < LONG ? AD_SCAN_ROWS : AD_SCAN_TILED;
    to->blocks = to->way == AD_SCAN_ROWS ? lay_rows(s, &k) : lay_tiles(s, &k);
    to->messages = s->tiles > 1 ? to->blocks * k.message : 0;
    return to->blocks <= INT32_MAX;
}

int ad_call_cumsum(ad_call *c) { return scan_call(c, ad_scan_sum, false); }
int ad_call_cumprod(ad_call *c) { return scan_call(c, ad_scan_product, false); }
int ad_call_nancumsum(ad_call *c) { return scan_call(c, ad_scan_sum, true); }
int ad_call_nancumprod(ad_call *c) { return scan_call(c, ad_scan_product, true); }
