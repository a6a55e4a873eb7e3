/* DLPack's own header, and the names of its capsules. */
#ifndef AD_PY_DLPACK_H
#define AD_PY_DLPACK_H

#include <dlpack/dlpack.h>

#define AD_PY_DL_PLAIN "dltensor"
#define AD_PY_DL_VERSIONED "dltensor_versioned"

#endif
