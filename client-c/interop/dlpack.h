/* Functions of dlpack.c that the Python package uses, too. */
#ifndef AD_CLIENT_C_INTEROP_DLPACK_H
#define AD_CLIENT_C_INTEROP_DLPACK_H

#include <dlpack/dlpack.h>
#include <stdbool.h>

/* Find the dtype of a tensor. AD_E_TYPE. */
int ad__dlpack_dtype(const DLTensor *t);
/* Tell whether the elements of a tensor, of a dtype of arrayd's, lie row by row without gaps. */
bool ad__dlpack_is_row_major(const DLTensor *t);

#endif
