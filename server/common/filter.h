/* Filters of system calls (seccomp): a list of calls that are allowed, and all others are refused. */
#ifndef ARRAYD_SERVER_COMMON_FILTER_H
#define ARRAYD_SERVER_COMMON_FILTER_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/base.h"

#define AD_FILTER_SIZE 512
#define AD_CALL_COUNT(list) (sizeof(list) / sizeof *(list))

typedef struct ad_filter {
    struct sock_filter code[AD_FILTER_SIZE];
    unsigned short size; /* AD_FILTER_SIZE: it was too long */
} ad_filter;

/* Begin a filter: a process that calls by another architecture's numbers is killed. */
void ad__filter_begin(ad_filter *f);
void ad__filter_add(ad_filter *f, uint16_t code, uint32_t k, uint8_t yes, uint8_t no);
/* Append instructions that load argument n (its lower half), for comparisons. */
void ad__filter_load(ad_filter *f, int n);
/* Append instructions that answer each of these calls with `with` (SECCOMP_RET_...). */
void ad__filter_answer(ad_filter *f, const int *calls, size_t n, uint32_t with);
/* Let a process read and set its own limits only. */
void ad__filter_own_limits(ad_filter *f);
/* Say of calls with greater numbers that they do not exist (ENOSYS). C libraries of later years try such calls first and then
 * use older ones. */
void ad__filter_hide_newer(ad_filter *f, uint32_t newest);
/* Let a process make threads and processes, but no namespaces and no traced ones. threads_only: no processes either. */
void ad__filter_clone(ad_filter *f, int threads_only);
/* Answer all other calls with `with`, and close the filter over all threads of this process, its children included. There is
 * no way back. AD_E_SYSTEM, AD_E_INTERNAL. */
int ad__filter_close(ad_filter *f, uint32_t with, ad_fault *fault);

#endif
