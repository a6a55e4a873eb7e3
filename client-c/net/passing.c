/* Passing descriptors to the server: each goes with the first byte of a frame that has one message only. */
#include <string.h>
#include <unistd.h>

#include "client-c/client.h"
#include "protocol/rows_request.h"

/* Begin an operation when no other descriptor is on its way. On success the lock is held. */
static int begin_passing(ad_session *s) {
    uint64_t checked = ad__now();
    int status = ad__begin(s);
    if (status) return status;
    while (!status && s->output.gathered_pass.fd >= 0) { /* a session that ends has none */
        if (s->output.writing) status = ad__wait_writer(s, &checked);
        else status = s->resume.lost ? ad__wait(s, &checked) : ad__push_output(s);
    }
    if (!status && s->dead) status = ad__fail_dead(s);
    if (status) pthread_mutex_unlock(&s->lock);
    return status;
}

/* Begin a frame that takes fd along; failure closes fd. *mark: offset of the frame's message. */
static int begin_descriptor_frame(ad_session *s, int fd, size_t *mark) {
    int status = begin_passing(s);
    if (status) {
        close(fd);
        return status;
    }
    ad__seal_frame(s, 0);
    ad__open_frame(s);
    *mark = s->output.gathered.size;
    return 0;
}

/* Seal the frame, which has one message only, and attach fd to its first byte. */
static void end_descriptor_frame(ad_session *s, int fd) {
    s->output.gathered_pass = (struct ad_pass){.fd = fd, .at = s->output.frame};
    ad__seal_frame(s, 0);
}

int ad__pass_window(ad_session *s, uint64_t window, uint64_t size, int fd, uint64_t *number) {
    size_t mark;
    int status = begin_descriptor_frame(s, fd, &mark);
    if (status) return status;
    status = ad__encode_numbers(&s->output.gathered, AD_REQ_WINDOW, 2, (uint64_t[]){window, size});
    if (status || s->output.gathered.failed) {
        close(fd);
        return ad__roll_back(s, mark, status);
    }
    *number = ++s->encoded.ops;
    end_descriptor_frame(s, fd);
    status = ad__push_output(s);
    pthread_mutex_unlock(&s->lock);
    return status;
}

int ad__pass_ask(ad_session *s, int opcode, size_t n, const uint64_t *fields, const char *text, int fd, ad_slot *slot,
                 uint64_t *buffer) {
    uint64_t all[8];
    size_t mark, used = 1;
    int status = begin_descriptor_frame(s, fd, &mark);
    if (status) return status;
    ad__slot_add(s, slot);
    all[0] = slot->request;
    if (buffer) all[used++] = *buffer = s->next_id.buffer++;
    memcpy(all + used, fields, n * sizeof *fields);
    status = ad__encode_named(&s->output.gathered, opcode, n + used, all, text != NULL, &text);
    if (status || s->output.gathered.failed) {
        close(fd);
        return ad__commit_ask(s, mark, AD_E_MEMORY, slot);
    }
    end_descriptor_frame(s, fd);
    status = ad__commit_ask(s, mark, 0, slot);
    if (status && buffer && ad__slot_is_made(slot, status)) ad__queue_free(s, *buffer, 0);
    return status;
}

int ad__pass_fork(ad_session *s, int fd, uint64_t key, const uint8_t secret[AD_SECRET]) {
    ad__open_frame(s);
    const size_t first = s->output.frame, mark = s->output.gathered.size;
    if (ad__encode_fork(&s->output.gathered, key, secret) != 0 || s->output.gathered.failed) {
        s->output.gathered.size = mark;
        s->output.gathered.failed = false;
        close(fd);
        return AD_E_MEMORY;
    }
    /* `once`: a copy here would hide from the child that the server has ended */
    s->output.gathered_pass = (struct ad_pass){.fd = fd, .at = first, .once = true};
    s->child.operation = ++s->encoded.ops;
    ad__seal_frame(s, 0);
    return ad__push_output(s);
}
