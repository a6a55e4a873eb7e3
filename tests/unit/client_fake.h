/* A server made for tests: it keeps buffers and windows and answers, and misbehaves as told. It decodes with protocol/,
 * computes nothing but `add` and `copy` of contiguous float64. */
#ifndef TESTS_CLIENT_FAKE_H
#define TESTS_CLIENT_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include <arrayd.h>
#include "protocol/message.h"

#define FAKE_BUFFERS 65536
#define FAKE_WINDOWS 64

typedef struct fake_options {
    uint64_t window_ops, window_bytes, max_payload; /* 0: large */
    size_t piece;                                   /* send and receive in pieces of so many bytes; 0: any */
    size_t part;                                    /* payload bytes of one frame of a read's reply; 0: max_payload */
    atomic_int die_after;                           /* close after so many messages; 0: never */
    atomic_size_t die_after_bytes;                  /* close after so many bytes of input; 0: never */
    bool reverse; /* hold replies until `hold` of them are there, then send them last first */
    int hold;
    int farewell;               /* say bye with this status at the end, and close without reading on */
    bool mute;                  /* answer nothing */
    atomic_bool no_ack;         /* acknowledge only when fake_acknowledge is called */
    int refuse;                 /* answer hello by bye with this status */
    const char *greeting;       /* raw bytes instead of welcome, NUL-terminated */
    int fail_reads;             /* answer reads with fail of this status */
    unsigned garble;            /* not 0: damage a byte of an answer, which and how by this number, and close */
    int refuse_windows;         /* refuse windows with this status */
    atomic_bool ignore_fetches; /* answer fetches never, but write into the window all the same */
    atomic_bool lose_windows;   /* have none of them any more */
    bool tcp;                   /* listen on loopback TCP */
    bool deaf;                  /* stop reading after hello until fake_listen */
    uint64_t resume; /* ms in which a session may be taken up; each return is by fake_return. 0: it may not be */
} fake_options;

typedef struct fake {
    fake_options options;
    char folder[64], url[128];
    int listener, fd;
    pthread_t thread;
    bool joined;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool listening;
    atomic_bool stopping;
    int returns;                /* connections that it may take behind the first one */
    atomic_uint_fast64_t taken; /* bytes of the stream that have come in whole frames */

    atomic_uint_fast64_t ops, frees, ufuncs, messages, frames, most_ahead; /* frees: ids */
    atomic_uint_fast64_t held_bytes, most_bytes;                           /* in buffers: now, at the most */
    atomic_uint_fast64_t acked, unacked_bytes;
    struct {
        uint8_t *data;
        size_t size;
    } buffers[FAKE_BUFFERS];
    struct {
        uint64_t id;
        uint8_t *base;
        size_t size;
    } windows[FAKE_WINDOWS];
    atomic_uint_fast64_t forks, nwindows, loads, loaded_bytes, fetches, ons, stream;
    int passed[8], npassed; /* descriptors that have come */
    bool misplaced;         /* one did not come with the first byte of a frame */
    ad_fault pending;
    uint64_t pending_number;
    atomic_bool violated; /* the window */
    size_t bytes;
    ad_bytes held[64];
    int nheld, answers;
} fake;

fake *fake_start(const fake_options *options);
/* Starts one and opens a session with it. */
fake *fake_open(const fake_options *options, ad_session **session);
/* Fork. The child has no other end of its connection: what the session sends before a fork has been taken, and let go,
 * when that happens. For a session that sends something. */
pid_t fake_fork(fake *f);
void fake_stop(fake *f);
void fake_wait(fake *f);        /* until it has closed */
bool fake_is_here(void);        /* whether the calling thread is that of a fake */
void fake_acknowledge(fake *f); /* from another thread, with no_ack */
void fake_listen(fake *f);      /* ends deaf */
/* Let it answer a session that comes back, once. taken: bytes that it says to have received before. */
void fake_return(fake *f, uint64_t taken);

#endif
