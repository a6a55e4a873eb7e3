/* Replies, acknowledgements and byes. Runner only. */
#ifndef AD_SERVER_WORKER_IO_REPLY_H
#define AD_SERVER_WORKER_IO_REPLY_H

#include "server/worker/session.h"

void ad__reply_values(ad_worker_session *s, uint64_t request, size_t n, const ad_scalar *values);
#define AD_REPLY_INTS 64 /* most values of ad__reply_ints */
void ad__reply_ints(ad_worker_session *s, uint64_t request, size_t n, const int64_t *values);
void ad__reply_part(ad_worker_session *s, uint64_t request, uint64_t total, uint64_t offset, uint32_t flags,
                    ad_output_block *part); /* part: NULL without payload */
/* Reply values, with a text as payload. */
void ad__reply_text(ad_worker_session *s, uint64_t request, size_t n, const ad_scalar *values, const char *text,
                    size_t size);
void ad__reply_fail(ad_worker_session *s, uint64_t request, const ad_poison *why);
/* Acknowledge complete operations, if enough have gathered. idle: nothing is queued. */
void ad__reply_ack(ad_worker_session *s, bool idle);
/* Append a bye. */
void ad__reply_bye(ad_worker_session *s, int code, const char *text);
/* Answer a request with a failure of its own. */
void ad__reply_fault(ad_worker_session *s, uint64_t request, int status, ad_fault *fault);
/* Count a failure reported to the client at a synchronisation. */
void ad__count_told_failure(ad_worker_session *s);
/* Answer a request with the session's pending failure, once. False: there is none. */
bool ad__reply_pending_failure(ad_worker_session *s, uint64_t request);
/* Report a request that this server does not know. AD_E_UNSUPPORTED. */
int ad__ask_unsupported(const ad_message *m, ad_fault *fault);

#endif
