/* Functions of dlpack.c that the Python package uses, too. */
#ifndef AD_CLIENT_C_INTEROP_DLPACK_H
#define AD_CLIENT_C_INTEROP_DLPACK_H

#include <dlpack/dlpack.h>
#include <stdbool.h>

#include "client-c/include/arrayd.h"

/* Find the dtype of a tensor. AD_E_TYPE. */
int ad__dlpack_dtype(const DLTensor *t);
/* Tell whether the elements of a tensor, of a dtype of arrayd's, lie row by row without gaps. */
bool ad__dlpack_is_row_major(const DLTensor *t);
/* Find the session's array of which ad_to_dlpack made the tensor; it lives as long as the tensor. NULL: there is none.
 */
const ad_array *ad__dlpack_array(const ad_session *s, const DLManagedTensorVersioned *tensor);

#endif
