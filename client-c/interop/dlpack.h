/* What dlpack.c does for the Python package, too. */
#ifndef AD_CLIENT_C_INTEROP_DLPACK_H
#define AD_CLIENT_C_INTEROP_DLPACK_H

#include <dlpack/dlpack.h>

/* Find the dtype of a tensor. AD_E_TYPE. */
int ad__dlpack_dtype(const DLTensor *t);

#endif
