/* Mapped memory of exports, which leases of the same memory have in common.
 *
 *   lease ──┐
 *           ├──▶ range: address of the memory in this process, until its last lease has ended
 *   lease ──┘ */
#ifndef AD_CLIENT_C_INTEROP_RANGES_H
#define AD_CLIENT_C_INTEROP_RANGES_H

#include <stdbool.h>

struct ad_lease;

/* Give the lease the range of its memory that another lease has mapped. False: there is none. */
bool ad__range_find(struct ad_lease *l);
/* Let other leases find the memory that the lease has mapped. Without memory for it none does. */
void ad__range_add(struct ad_lease *l);
/* End the lease's use of its range. True: it was the last one, and the caller unmaps the memory. */
bool ad__range_leave(struct ad_lease *l);
void ad__ranges_before_fork(void);
void ad__ranges_forked(void);

#endif
