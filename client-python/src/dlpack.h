/* DLPack's own header, the names of its capsules, and functions that the files share which know it. */
#ifndef AD_PY_DLPACK_H
#define AD_PY_DLPACK_H

#include <dlpack/dlpack.h>

#include "core.h"

#define AD_PY_DL_PLAIN "dltensor"
#define AD_PY_DL_VERSIONED "dltensor_versioned"

/* Make a capsule of a tensor, which is taken over: it is deleted with the capsule. versioned: false for consumers that
 * know no versions. NULL with an exception. */
PyObject *ad__py_make_capsule(DLManagedTensorVersioned *tensor, bool versioned);
/* Make an array of a capsule's tensor: its memory on a GPU, a copy of it in the host's. stream: a CUstream on which the
 * tensor was made; NULL: all that this process has begun is waited for. NULL with an exception. */
PyObject *ad__py_take_capsule(PyObject *capsule, void *stream);

#endif
