/* label: numbers of connected elements. Each element has a parent, an earlier one that it is connected with or itself.
 * Pieces of the array are joined in parallel, what crosses their borders afterwards, and roots are numbered in order.
 * Nearly always an element is connected with the one to its left. Then a run of elements has its first one for parent
 * at once, and of two runs that touch each other only the first elements that do are joined. */
#include "kernels/call.h"

#include <algorithm>
#include <string.h>

#include "kernels/cpu/backend/parallel.h"
#include "kernels/ndimage.h"

namespace {

using namespace ad;

constexpr int64_t LEAST_PIECE = 1 << 16; /* elements */
constexpr int32_t NONE = -1;

/* Elements of an array without gaps by their places in it. Neighbours: those of offsets that lead to earlier ones. */
struct field {
    const bool8 *x; /* read once: somebody else may write it */
    uint8_t *there; /* of each element, 1 where it is true */
    int32_t *parent;
    int ndim;
    int64_t count, row, neighbours;
    int64_t left;                 /* the neighbour that is the element to the left; -1: it is none */
    const int64_t *offset, *away; /* of each neighbour along each axis, and in elements */
    int64_t shape[AD_MAX_NDIM];
};

int32_t find_root(int32_t *parent, int32_t i) {
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

void join_places(int32_t *parent, int32_t a, int32_t b) {
    a = find_root(parent, a);
    b = find_root(parent, b);
    if (a < b) parent[b] = a;
    else parent[a] = b;
}

/* Find the columns from `first` on that have neighbour k in the row whose first element is `row`. None have it if it is
 * in no row. */
bool find_columns(const field *f, int64_t row, int64_t k, int64_t *begin, int64_t *end) {
    const int64_t *offset = f->offset + k * f->ndim;
    int64_t rest = row / f->row;
    for (int d = f->ndim - 2; d >= 0; d--) {
        const int64_t at = rest % f->shape[d] + offset[d];
        if (at < 0 || at >= f->shape[d]) return false;
        rest /= f->shape[d];
    }
    *begin = std::max(*begin, -offset[f->ndim - 1]);
    *end = std::min(*end, f->row - std::max(offset[f->ndim - 1], int64_t(0)));
    return *begin < *end;
}

/* a where `which` is -1, b where it is 0. A branch on random elements is mispredicted often. */
int32_t choose(int32_t which, int32_t a, int32_t b) { return (a & which) | (b & ~which); }

/* The parents of places first to last, within these: the first of the run, or the element itself. */
void begin_range(const field *f, int64_t first, int64_t last) {
    const bool8 *x = f->x;
    uint8_t *there = f->there;
    int32_t *parents = f->parent;
    const int32_t runs = f->left >= 0 ? -1 : 0;
    for (int64_t row = first / f->row * f->row; row < last; row += f->row) {
        int32_t parent = NONE;
        for (int64_t i = std::max(first, row), end = std::min(last, row + f->row); i < end; i++) {
            const bool is_true = x[i];
            const int32_t goes_on = runs & ~(parent >> 31), own = choose(goes_on, parent, int32_t(i));
            there[i] = is_true;
            parents[i] = parent = choose(-int32_t(is_true), own, NONE);
        }
    }
}

/* Eight elements, of which each is 1 where it is true; the first one is in the lowest byte. */
uint64_t load_eight(const uint8_t *there) {
    uint64_t v;
    memcpy(&v, there, sizeof v);
    return v;
}

/* Join places of a row with those that lie `away` before them, from `border` on, or (late) before it. Where the places
 * to the left touched as well, this has been done, or will be done at the border. */
void join_row(const field *f, int64_t begin, int64_t end, int64_t away, int64_t border, bool late) {
    if (late) end = std::min(end, border + away);
    else begin = std::max(begin, border + away);
    uint64_t last = 0;
    int64_t i = begin;
    for (; i + 8 <= end; i += 8) {
        const uint64_t touch = load_eight(f->there + i) & load_eight(f->there + i - away);
        uint64_t joined = f->left >= 0 ? touch & ~(touch << 8 | last) : touch;
        last = touch >> 56;
        for (; joined != 0; joined &= joined - 1) {
            const int64_t at = i + __builtin_ctzll(joined) / 8;
            join_places(f->parent, int32_t(at - away), int32_t(at));
        }
    }
    bool before = f->left >= 0 && last != 0;
    for (; i < end; i++) {
        const bool touch = f->there[i] && f->there[i - away];
        if (touch && !before) join_places(f->parent, int32_t(i - away), int32_t(i));
        before = touch && f->left >= 0;
    }
}

/* Join places first to last with their neighbours: those from `border` on, or (late) those before it. */
void join_range(const field *f, int64_t first, int64_t last, int64_t border, bool late) {
    for (int64_t row = first / f->row * f->row; row < last; row += f->row)
        for (int64_t k = 0; k < f->neighbours; k++) {
            int64_t begin = std::max(first - row, int64_t(0)), end = std::min(last - row, f->row);
            if (k == f->left && !late) continue;
            ad_cpu_check_cancelled();
            if (find_columns(f, row, k, &begin, &end)) join_row(f, row + begin, row + end, f->away[k], border, late);
        }
}

void join_elements(const field *f) {
    const int64_t pieces = std::min(int64_t(ad_cpu_parallel_threads()), std::max(f->count / LEAST_PIECE, int64_t(1)));
    const int64_t piece = (f->count + pieces - 1) / pieces;
    int64_t reach = 0;
    for (int64_t k = 0; k < f->neighbours; k++) reach = std::max(reach, f->away[k]);
    ad_cpu_parallel(pieces, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; p++) {
            const int64_t first = p * piece, last = std::min(first + piece, f->count);
            begin_range(f, first, last);
            for (int64_t i = first; i < last; i += LEAST_PIECE)
                join_range(f, i, std::min(i + LEAST_PIECE, last), first, false);
        }
    });
    for (int64_t p = 1; p < pieces; p++) {
        const int64_t first = p * piece;
        join_range(f, std::min(first, f->count), std::min(first + reach, std::min(first + piece, f->count)), first,
                   true);
    }
}

/* Parents are earlier than their children, and so have their number already. */
int64_t number_elements(const field *f, int32_t *label) {
    const int32_t *parents = f->parent;
    int32_t found = 0;
    ad_cpu_in_order(f->count, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            const int32_t parent = parents[i], known = label[std::max(parent, 0)], is_root = -int32_t(parent == i);
            found -= is_root;
            label[i] = choose(is_root, found, known) & ~(parent >> 31);
        }
    });
    return found;
}

/* Copy those offsets that lead to earlier elements, turned round: how far those are. */
int copy_neighbours(ad_call *c, field *f) {
    array offsets;
    int status = ad_call_input(c, 1, AD_INT64, &offsets);
    if (status) return status;
    const int64_t n = offsets.shape[0];
    int64_t *copy = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(n * (f->ndim + 1) + 1) * 8)), *away;
    if (!copy) return AD_E_MEMORY;
    f->offset = copy;
    f->away = away = copy + n * f->ndim;
    f->neighbours = 0;
    f->left = -1;
    for (int64_t k = 0; k < n; k++) {
        int64_t *one = copy + f->neighbours * f->ndim, far = 0;
        bool inside = true, before = true;
        for (int d = 0; d < f->ndim; d++) {
            one[d] = *reinterpret_cast<const int64_t *>(offsets.data + k * offsets.stride[0] + d * offsets.stride[1]);
            inside = inside && one[d] > -f->shape[d] && one[d] < f->shape[d];
            if (inside) far = far * f->shape[d] + one[d];
            before = before && one[d] == (d == f->ndim - 1 ? -1 : 0);
        }
        if (inside && before) f->left = f->neighbours;
        if (inside && far < 0) away[f->neighbours++] = -far;
    }
    return 0;
}

} // namespace

int ad_call_label(ad_call *c) {
    array x, out, total;
    field f;
    int status;
    if ((status = ad_call_input_packed(c, 0, AD_BOOL, &x)) || (status = ad_call_output(c, 0, AD_INT32, &out)) ||
        (status = ad_call_output(c, 1, AD_INT64, &total)))
        return status;
    f.x = reinterpret_cast<const bool8 *>(x.data);
    f.ndim = x.ndim;
    f.count = count(x);
    for (int d = 0; d < x.ndim; d++) f.shape[d] = x.shape[d];
    f.row = x.shape[x.ndim - 1];
    array label = out;
    const uint64_t size = uint64_t(pack(&label));
    f.parent = static_cast<int32_t *>(ad_call_workspace(c, size));
    f.there = static_cast<uint8_t *>(ad_call_workspace(c, uint64_t(f.count)));
    if (!f.parent || !f.there) return AD_E_MEMORY;
    if ((status = copy_neighbours(c, &f))) return status;
    if (!is_packed(out)) label.data = static_cast<char *>(ad_call_workspace(c, size));
    if (!label.data) return AD_E_MEMORY;
    if (f.count > 0) join_elements(&f);
    c->run->wrote = true;
    *reinterpret_cast<int64_t *>(total.data) =
        f.count > 0 ? number_elements(&f, reinterpret_cast<int32_t *>(label.data)) : 0;
    if (label.data != out.data && (status = ad_call_copy(c, &out, &label))) return status;
    return (status = ad_call_finish(c, 0, &out)) ? status : ad_call_finish(c, 1, &total);
}
