/* Ids of the rows of ufunc.def, reduction.def and call.def, for files that name rows of several tables.
 *
 * A file that names rows of one table includes the header of that table alone, so that a new row does not rebuild it.
 */
#ifndef AD_PROTOCOL_ROWS_H
#define AD_PROTOCOL_ROWS_H

#include "rows_call.h"
#include "rows_reduction.h"
#include "rows_ufunc.h"

#endif
