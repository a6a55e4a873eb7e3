/* A key of a[key], taken apart. */
#ifndef AD_PY_INDEX_H
#define AD_PY_INDEX_H

#include "core.h"

#define AD_PY_MAX_ITEMS 72 /* of a key: 32 axes, and axes that it makes */

typedef enum ad__py_item_kind {
    ITEM_INT,
    ITEM_SLICE,
    ITEM_ELLIPSIS,
    ITEM_NEW,
    ITEM_INDEX,
    ITEM_MASK,
    ITEM_BOOL
} ad__py_item_kind;

typedef struct ad__py_key_item {
    ad__py_item_kind kind;
    int64_t value;    /* INT: the index; BOOL: the truth */
    PyObject *object; /* SLICE: borrowed; INDEX, MASK: owned, an ndarray or a numpy.ndarray */
    bool host;        /* object is a numpy.ndarray */
    int naxes;        /* axes of the indexed array that it takes */
} ad__py_key_item;

/* The places of an index array's axes in the view that the rest of the key makes. */
typedef struct ad__py_fancy {
    ad__py_key_item *item;
    int axis; /* the first in the view */
    int of;   /* the first in the indexed array, for messages */
} ad__py_fancy;

typedef struct ad__py_key {
    ad__py_key_item item[AD_PY_MAX_ITEMS];
    int nitems, nfancy;
    ad__py_fancy fancy[AD_MAX_NDIM];
    /* the view that ints, slices and new axes make */
    int ndim;
    int64_t shape[2 * AD_MAX_NDIM + 2], strides[2 * AD_MAX_NDIM + 2], offset;
    int position; /* of the index arrays' axes in the result */
} ad__py_key;

/* Takes key apart for an array: 0, or -1 with an exception. ad__py_key_free in either case. */
int ad__py_key_parse(ad__py_key *k, PyObject *a, PyObject *key);
void ad__py_key_free(ad__py_key *k);
/* The view, before index arrays. */
PyObject *ad__py_key_view(const ad__py_key *k, PyObject *a);

/* The index arrays as int64 arrays on the server, of one shape. count of them, for these axes of the view, in order. */
typedef struct ad__py_indices {
    int count, axes[AD_MAX_NDIM];
    ad_array *array[AD_MAX_NDIM];
    int ndim;
    int64_t shape[AD_MAX_NDIM]; /* that they have in common */
} ad__py_indices;
int ad__py_indices_make(ad__py_indices *x, const ad__py_key *k, const ad_array_info *view, ad__py_session *s);
void ad__py_indices_free(ad__py_indices *x);
/* The view with the chosen axes first. */
ad_array *ad__py_axes_first(ad_array *view, int count, const int *axes);
/* Move n axes from `from` on to `to`. */
ad_array *ad__py_axes_moved(ad_array *view, int from, int n, int to);
/* The only index array is one mask, on the server or here. */
static inline bool ad__py_is_one_mask(const ad__py_key *k) {
    return k->nfancy == 1 && k->fancy[0].item->kind == ITEM_MASK;
}
/* The mask on the server: a new reference. */
PyObject *ad__py_mask(const ad__py_key_item *item, ad__py_session *s);

#endif
