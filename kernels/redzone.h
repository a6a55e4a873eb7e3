/* Memory of a slab that nobody may touch now, where AddressSanitizer looks on: blocks that are free, what lies between
 * those in use, and what lies behind the slab. Elsewhere these are nothing.
 *
 * It is for this process only: another one that maps the slab may touch all of it until it says otherwise. */
#ifndef AD_KERNELS_REDZONE_H
#define AD_KERNELS_REDZONE_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AD_REDZONES
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define AD_REDZONES
#endif

#ifdef AD_REDZONES
#include <sanitizer/asan_interface.h>
#define AD_REDZONE 64 /* bytes behind a block of a slab */
#define AD_REDZONE_CLOSE(address, size) __asan_poison_memory_region(address, size)
#define AD_REDZONE_OPEN(address, size) __asan_unpoison_memory_region(address, size)
#else
#define AD_REDZONE 0
#define AD_REDZONE_CLOSE(address, size) ((void)(address), (void)(size))
#define AD_REDZONE_OPEN(address, size) ((void)(address), (void)(size))
#endif

#endif
