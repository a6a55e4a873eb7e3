/* Products of two sparse matrices, row by row. The products of a row's entries are added up in a table that finds
 * columns, then sorted by column. Few of them are added up where they belong at once. */
#include "kernels/cpu/call/radix.h"
#include "kernels/cpu/call/sparse.h"

namespace {

constexpr int64_t AHEAD = 4;        /* entries whose rows of the second matrix are fetched before they are used */
constexpr int64_t FEW = 24;         /* products of a row that need no table, and entries that are sorted by insertion */
constexpr int64_t NARROW = 1 << 16; /* columns that have a cell each even if rows are short */

/* The place of a column in the table. It is of the row that has marked it, and otherwise free. */
template <class T, class I> struct cell {
    T sum;
    I column, mark;
};

/* The product, and what it is computed with. A row has room for as many entries as it may have, from `room` on. */
template <class T, class I> struct sparse_product {
    csr<T, I> a, b;
    int64_t columns;
    int64_t *room;  /* of each row, and where the last one's ends */
    int64_t *ends;  /* products of all rows up to each one */
    int64_t *count; /* products of each row; then its entries */
    T *data;
    I *indices;
};

/* A table is what one thread works with. Where columns are searched, rows have so many products that half of its cells
 * stay free. Otherwise each column has a sum, which is 0, and a bit, between rows. */
template <class T, class I> struct row_table {
    cell<T, I> *cells;
    uint64_t *found, *other; /* columns that a row has, each with its cell in the lower half; and room to sort them */
    int digits;              /* of eight bits, of columns */
    int64_t words;           /* of bits; 0: columns are searched */
    T *sums;
    uint64_t *bits;
};

/* How many cells a row takes, so that half of them stay free. */
int64_t count_cells(int64_t products) {
    int64_t n = 16;
    while (n < 2 * products) n *= 2;
    return n;
}

/* The cell of a column, or the free one where it belongs. */
template <class T, class I> int64_t find_cell(const row_table<T, I> &t, int64_t mask, I mark, I column) {
    int64_t at = int64_t(uint64_t(column) * 0x9e3779b97f4a7c15u >> 20) & mask;
    while (t.cells[at].mark == mark && t.cells[at].column != column) at = (at + 1) & mask;
    return at;
}

/* Have the row fetched that entry e of a is to be multiplied with. */
template <class T, class I> inline void fetch_ahead(const sparse_product<T, I> &p, int64_t e) {
    if (e >= p.a.entries) return;
    const int64_t at = p.b.indptr[p.a.indices[e]];
    __builtin_prefetch(p.b.indices + at);
    __builtin_prefetch(p.b.data + at);
}

/* f(column, product) for the products of row i in their order. */
template <class T, class I, class F> void go_through_products(const sparse_product<T, I> &p, int64_t i, F f) {
    const csr<T, I> a = p.a, b = p.b;
    const int64_t behind = a.indptr[i + 1];
    int64_t products = 0;
    for (int64_t e = a.indptr[i]; e < behind; e++) {
        const int64_t k = a.indices[e], begin = b.indptr[k], end = b.indptr[k + 1];
        const T factor = a.data[e];
        fetch_ahead(p, e + AHEAD);
        for (int64_t g = begin; g < end; g++) f(b.indices[g], factor * b.data[g]);
        if ((products += end - begin) < CANCEL_EVERY) continue;
        products = 0;
        ad_cpu_check_cancelled();
    }
}

/* Add up few products where they belong. The entries so far are sorted. */
template <class T, class I> void multiply_short_row(const sparse_product<T, I> &p, int64_t i) {
    T *data = p.data + p.room[i];
    I *indices = p.indices + p.room[i];
    int64_t n = 0;
    go_through_products(p, i, [&](I column, T product) {
        int64_t at = n;
        while (at > 0 && indices[at - 1] > column) at--;
        if (at > 0 && indices[at - 1] == column) {
            data[at - 1] = data[at - 1] + product;
            return;
        }
        for (int64_t k = n++; k > at; k--) {
            data[k] = data[k - 1];
            indices[k] = indices[k - 1];
        }
        data[at] = product;
        indices[at] = column;
    });
    p.count[i] = n;
}

/* Add up the products of row i; how many columns they have. The mark of a row is its number, from 1. */
template <class T, class I>
int64_t add_products(const sparse_product<T, I> &p, const row_table<T, I> &t, int64_t i, bool *ascends) {
    const int64_t mask = count_cells(p.room[i + 1] - p.room[i]) - 1;
    const I mark = I(i + 1);
    int64_t n = 0;
    bool sorted = true;
    go_through_products(p, i, [&](I column, T product) {
        const int64_t at = find_cell(t, mask, mark, column);
        cell<T, I> &one = t.cells[at];
        if (one.mark == mark) {
            one.sum = one.sum + product;
            return;
        }
        one = {product, column, mark};
        const uint64_t key = uint64_t(column) << 32 | uint64_t(at);
        sorted &= n == 0 || t.found[n - 1] < key;
        t.found[n++] = key;
    });
    *ascends = sorted;
    return n;
}

/* Sort keys by their upper halves, digit by digit; the sorted ones. */
inline const uint64_t *sort_keys(uint64_t *from, uint64_t *to, int64_t n, int digits) {
    if (n <= FEW) {
        std::sort(from, from + n);
        return from;
    }
    int64_t at[1][RADIX_SIZE];
    for (int d = 0; d < digits; d++) {
        const int shift = 32 + RADIX_BITS * d;
        radix_count(from, n, shift, at[0]);
        if (!radix_places(at, 1, n)) continue;
        radix_move(from, n, shift, at[0], to);
        std::swap(from, to);
    }
    return from;
}

/* Write the columns of a row and their sums, sorted. */
template <class T, class I>
void write_row(const sparse_product<T, I> &p, const row_table<T, I> &t, int64_t i, int64_t n, bool ascends) {
    T *data = p.data + p.room[i];
    I *indices = p.indices + p.room[i];
    p.count[i] = n;
    const uint64_t *keys = ascends ? t.found : sort_keys(t.found, t.other, n, t.digits);
    for (int64_t k = 0; k < n; k++) {
        data[k] = t.cells[uint32_t(keys[k])].sum;
        indices[k] = I(keys[k] >> 32);
    }
}

/* Find words of bits that are not 0, without branches; how many there are. */
template <class T, class I> int64_t find_words(const row_table<T, I> &t) {
    const uint64_t *bits = t.bits;
    uint64_t *found = t.found;
    const int64_t words = t.words;
    int64_t n = 0;
    for (int64_t w = 0; w < words; w++) {
        found[n] = uint64_t(w);
        n += bits[w] != 0;
    }
    return n;
}

/* Write the sums of a row, whose words have been found, and make them 0 again. */
template <class T, class I>
void write_sums(const sparse_product<T, I> &p, const row_table<T, I> &t, int64_t i, int64_t words) {
    T *data = p.data + p.room[i], *sums = t.sums;
    I *indices = p.indices + p.room[i];
    uint64_t *words_of = t.bits;
    const uint64_t *found = t.found;
    int64_t n = 0;
    for (int64_t k = 0; k < words; k++) {
        const int64_t w = int64_t(found[k]);
        for (uint64_t bits = words_of[w]; bits; bits &= bits - 1) {
            const int64_t column = 64 * w + __builtin_ctzll(bits);
            data[n] = sums[column];
            indices[n++] = I(column);
            sums[column] = T(0);
        }
        words_of[w] = 0;
    }
    p.count[i] = n;
}

/* Add up the products of row i. Where they are few, their words are noted and sorted, as there are many more. */
template <class T, class I> void multiply_directly(const sparse_product<T, I> &p, const row_table<T, I> &t, int64_t i) {
    const bool few = p.count[i] < t.words / 16;
    T *sums = t.sums;
    uint64_t *bits = t.bits, *found = t.found;
    int64_t words = 0;
    const auto add = [=](I column, T product) {
        sums[column] = sums[column] + product;
        bits[uint64_t(column) / 64] |= uint64_t(1) << uint64_t(column) % 64;
    };
    if (few) {
        go_through_products(p, i, [&](I column, T product) {
            found[words] = uint64_t(column) / 64;
            words += bits[uint64_t(column) / 64] == 0;
            add(column, product);
        });
        std::sort(found, found + words);
    } else {
        go_through_products(p, i, add);
        words = find_words(t);
    }
    write_sums(p, t, i, words);
}

/* Set how many products rows have, and the room of their entries. AD_E_MEMORY. */
template <class T, class I> int measure_rows(ad_call *c, sparse_product<T, I> *p) {
    const int64_t rows = p->a.rows;
    int64_t *memory = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(3 * rows + 3) * sizeof(int64_t)));
    if (!memory) return AD_E_MEMORY;
    p->room = memory;
    p->ends = memory + rows + 1;
    p->count = p->ends + rows + 1;
    ad_cpu_parallel(rows, rows_for_grain(rows, p->a.entries, 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            int64_t n = 0;
            for (int64_t e = p->a.indptr[i]; e < int64_t(p->a.indptr[i + 1]); e++) {
                const int64_t k = p->a.indices[e];
                n += p->b.indptr[k + 1] - p->b.indptr[k];
            }
            p->count[i] = n;
        }
    });
    int64_t room = 0, products = 0;
    for (int64_t i = 0; i < rows; i++) {
        p->room[i] = room;
        room += std::min(p->count[i], p->columns);
        p->ends[i] = products += p->count[i];
    }
    p->room[rows] = room;
    return 0;
}

/* Get the table of one thread, whose cells are unmarked. AD_E_MEMORY. */
template <class T, class I> int make_table(ad_call *c, const sparse_product<T, I> &p, row_table<T, I> *t) {
    int64_t most = 0;
    for (int64_t i = 0; i < p.a.rows; i++) most = std::max(most, p.room[i + 1] - p.room[i]);
    const int64_t searched = count_cells(most);
    const bool direct = p.columns < std::max(searched, NARROW);
    t->words = direct ? p.columns / 64 + 1 : 0;
    for (t->digits = 1; t->digits < 4 && p.columns >> 8 * t->digits; t->digits++) {}
    const auto take = [&](int64_t n, uint64_t size) { return ad_call_workspace(c, uint64_t(n) * size); };
    t->found = static_cast<uint64_t *>(take(direct ? t->words + 1 : most, sizeof(uint64_t)));
    if (direct) {
        t->sums = static_cast<T *>(take(p.columns + 1, sizeof(T)));
        t->bits = static_cast<uint64_t *>(take(t->words, sizeof(uint64_t)));
        if (!t->found || !t->sums || !t->bits) return AD_E_MEMORY;
        std::fill_n(t->sums, p.columns, T(0));
        std::fill_n(t->bits, t->words, uint64_t(0));
        return 0;
    }
    t->cells = static_cast<cell<T, I> *>(take(searched, sizeof(cell<T, I>)));
    t->other = static_cast<uint64_t *>(take(most, sizeof(uint64_t)));
    if (!t->cells || !t->found || !t->other) return AD_E_MEMORY;
    for (int64_t k = 0; k < searched; k++) t->cells[k].mark = 0;
    return 0;
}

template <class T, class I>
void multiply_rows(const sparse_product<T, I> &p, const row_table<T, I> &t, int64_t first, int64_t last) {
    int64_t done = 0;
    for (int64_t i = first; i < last; i++) {
        bool ascends;
        if ((done += p.count[i] + 1) >= CANCEL_EVERY) {
            done = 0;
            ad_cpu_check_cancelled();
        }
        if (p.count[i] <= FEW) {
            multiply_short_row(p, i);
            continue;
        }
        if (t.words) {
            multiply_directly(p, t, i);
            continue;
        }
        const int64_t n = add_products(p, t, i, &ascends);
        write_row(p, t, i, n, ascends);
    }
}

/* Compute rows in as many parts as there are threads, of equally many products. AD_E_MEMORY. */
template <class T, class I> int multiply_parts(ad_call *c, const sparse_product<T, I> &p) {
    const int64_t rows = p.a.rows, products = rows ? p.ends[rows - 1] : 0;
    const int64_t parts =
        std::max<int64_t>(1, std::min<int64_t>({MOST_PARTS, ad_cpu_parallel_threads(), products / GRAIN}));
    row_table<T, I> tables[MOST_PARTS];
    for (int64_t k = 0; k < parts; k++) {
        const int status = make_table(c, p, &tables[k]);
        if (status) return status;
    }
    const auto first_row = [&](int64_t part) {
        return part == parts ? rows : std::lower_bound(p.ends, p.ends + rows, products / parts * part) - p.ends;
    };
    ad_cpu_parallel(parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t part = begin; part < end; part++)
            multiply_rows(p, tables[part], first_row(part), first_row(part + 1));
    });
    return 0;
}

/* Make outputs of the size that the product has, and move its rows there. AD_E_MEMORY, AD_E_VALUE. */
template <class T, class I> int give_product(ad_call *c, const sparse_product<T, I> &p) {
    const int index_dtype = c->op->operand[1].desc.dtype;
    const int64_t rows = p.a.rows;
    int64_t entries = 0;
    int status;
    for (int64_t i = 0; i < rows; i++) {
        p.ends[i] = entries;
        entries += p.count[i];
    }
    if (int64_t(I(entries)) != entries)
        return ad__fault(c->fault, AD_E_VALUE,
                         "the product has %" PRId64 " entries, too many for indices of type int32", entries);
    array out[3] = {{nullptr, c->op->loop, 1, {entries}, {}},
                    {nullptr, index_dtype, 1, {entries}, {}},
                    {nullptr, index_dtype, 1, {rows + 1}, {}}};
    for (int k = 0; k < 3; k++)
        if ((status = ad_call_sized(c, k, &out[k]))) return status;
    c->run->values[0] = entries;
    c->run->nvalues = 1;
    T *data = reinterpret_cast<T *>(out[0].data);
    I *indices = reinterpret_cast<I *>(out[1].data), *indptr = reinterpret_cast<I *>(out[2].data);
    indptr[rows] = I(entries);
    ad_cpu_parallel(rows, rows_for_grain(rows, entries, 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            indptr[i] = I(p.ends[i]);
            std::copy_n(p.data + p.room[i], p.count[i], data + p.ends[i]);
            std::copy_n(p.indices + p.room[i], p.count[i], indices + p.ends[i]);
        }
    });
    for (int k = 0; k < 3; k++)
        if ((status = ad_call_finish(c, k, &out[k]))) return status;
    return 0;
}

template <class T, class I> int multiply_matrices(ad_call *c) {
    sparse_product<T, I> p;
    int status;
    p.columns = c->op->param[0].as.i;
    if ((status = get_csr_input(c, 0, &p.a)) || (status = get_csr_input(c, 3, &p.b)) ||
        (status = check_indptr(c, p.a)) || (status = check_indptr(c, p.b)) ||
        (status = check_indices(c, p.a, p.b.rows)) || (status = check_indices(c, p.b, p.columns)) ||
        (status = measure_rows(c, &p)))
        return status;
    p.data = static_cast<T *>(ad_call_workspace(c, uint64_t(p.room[p.a.rows]) * sizeof(T)));
    p.indices = static_cast<I *>(ad_call_workspace(c, uint64_t(p.room[p.a.rows]) * sizeof(I)));
    if (!p.data || !p.indices) return AD_E_MEMORY;
    status = multiply_parts(c, p);
    return status ? status : give_product(c, p);
}

} // namespace

int ad_call_spgemm(ad_call *c) {
    return visit_sparse(c, [&](auto t, auto u) {
        return multiply_matrices<typename decltype(t)::type, typename decltype(u)::type>(c);
    });
}
