/* Notes to arrayd. */
#ifndef AD_SERVER_WORKER_BASE_TELL_H
#define AD_SERVER_WORKER_BASE_TELL_H

#include "server/common/channel.h"

struct ad_worker;

/* Any thread: send arrayd a note; fd as in ad__channel_send. A failure may end the process. */
void ad__worker_tell(struct ad_worker *w, const ad_note *note, int fd);

#endif
