/* The cache of compiled kernels on disk: a file for each key, with the result and the job that it came from.
 *
 * A file is written under another name and renamed, so it is complete. A hash finds what a bad disk has changed,
 * when the file is loaded. Any failure counts as a miss. */
#ifndef AD_SERVER_WORKER_MODULES_COMPILE_DISK_H
#define AD_SERVER_WORKER_MODULES_COMPILE_DISK_H

#include "protocol/message.h"
#include "protocol/tls/digest.h"

typedef struct ad_disk {
    char folder[4096]; /* path of the folder; "": there is none */
    uint64_t limit, used;
    unsigned stores;
    bool complained;
} ad_disk;

/* Open the folder that `option` (kernels-cache) means, and make it if it is not there. */
void ad__disk_open(ad_disk *d, const char *option, uint64_t limit);
/* Store and load nothing any more, and log why. */
void ad__disk_give_up(ad_disk *d, const char *why);
/* Append the result stored under key. False: there is none. */
bool ad__disk_load(ad_disk *d, const uint8_t key[AD_SHA256_SIZE], ad_bytes *result);
void ad__disk_store(ad_disk *d, const uint8_t key[AD_SHA256_SIZE], const ad_bytes *result, const ad_bytes *job);
/* Call `each` with every job of the folder until it returns false. Returns the number of calls. */
size_t ad__disk_jobs(ad_disk *d, bool (*each)(void *user, const ad_bytes *job), void *user);

#endif
