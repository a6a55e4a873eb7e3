/* Recovery: a worker may be killed at any store. The kill may come when any part of a committed checkpoint's log has
 * been copied into the table. The next worker then finds the session as the checkpoint has it. Before the commit it
 * finds it as the checkpoint before has it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "random.h"
#include "server/common/log.h"
#include "server/worker/io/trace.h"
#include "server/worker/recover/recover.h"
#include "server/worker/session/session.h"
#include "server/worker/sharing/sharing.h"
#include "tests/unit/worker/ops.h"

enum { IDS = 24, ROUNDS = 25, CHANGES = 6, SLABS = 64 };

static const ad_component *const components[] = {&ad__component_turn,
                                                 &ad__component_socket,
                                                 &ad__component_input,
                                                 &ad__component_output,
                                                 &ad__component_comeback,
                                                 &ad__component_reading,
                                                 &ad__component_fusion,
                                                 &ad__component_checkpoint,
                                                 &ad__component_buffers,
                                                 &ad__component_spill,
                                                 &ad__component_sharing,
                                                 &ad__component_modules,
                                                 &ad__component_checks,
                                                 &ad__component_events,
                                                 &ad__component_windows,
                                                 &ad__component_streams,
                                                 &ad__component_messages,
                                                 &ad__component_trace,
                                                 NULL};

/* The arrays of the session: 0: there is none. */
typedef struct model {
    int64_t value[IDS];
    bool lost[IDS]; /* it was changed in place since the checkpoint */
    bool gone[IDS]; /* it was freed first of all since then: what is executed again frees it before it is read */
} model;

static ad_note slab[SLABS];
static int slab_fd[SLABS], nslabs;

static ad_worker *start_worker(void) {
    ad_worker *w = fake_worker(false, true, components);
    w->hooks.checkpoint = &ad__checkpoint_hooks;
    w->hooks.sharing = &ad__sharing_hooks;
    w->hooks.modules = &ad__modules_hooks;
    cr_assert_eq(ad__sharing_open(w), 0);
    ad__log_set(AD_LOG_ERROR);
    return w;
}

/* Take the slabs that the worker tells arrayd of. */
static void take_slabs(ad_channel *arrayd) {
    ad_note note;
    int fd;
    while (ad__channel_receive(arrayd, &note, &fd) > 0) {
        if (note.kind != AD_NOTE_SLAB) continue;
        cr_assert_lt(nslabs, SLABS);
        slab[nslabs] = note;
        slab[nslabs].kind = AD_NOTE_OLD_SLAB;
        slab_fd[nslabs++] = fd;
    }
}

/* Copy what is written of a memory file. */
static int copy_file(int from) {
    struct stat st;
    char piece[4096];
    int to = memfd_create("image", MFD_CLOEXEC);
    cr_assert(to >= 0 && fstat(from, &st) == 0 && ftruncate(to, st.st_size) == 0);
    for (off_t at = lseek(from, 0, SEEK_DATA); at >= 0; at = lseek(from, at, SEEK_DATA)) {
        const off_t end = lseek(from, at, SEEK_HOLE);
        for (; at < end; at += (off_t)sizeof piece) {
            cr_assert_eq(pread(from, piece, sizeof piece, at), (ssize_t)sizeof piece);
            cr_assert_eq(pwrite(to, piece, sizeof piece, at), (ssize_t)sizeof piece);
        }
    }
    return to;
}

/* In another process: recover the image. NULL: the session is not there. */
static const ad_worker_session *recover_session(int image) {
    ad_worker *w = start_worker();
    for (int i = 0; i < nslabs; i++) ad__recovery_take(w, &slab[i], dup(slab_fd[i]));
    ad__recovery_run(w, &(ad_note){.kind = AD_NOTE_RECOVER, .id = 1000, .size = AD_DEATH_KILLED}, image);
    return ad__session_find(w, 1);
}

/* In another process: recover the image, and compare. Returns the exit status; 0: all is as expected. */
static int recover_image(int image, const model *expected) {
    uint64_t count = 0;
    const ad_worker_session *s = recover_session(image);
    if (!s) return 2;
    if (s->socket.phase != AD_SOCKET_AWAY) return 3;
    for (uint64_t id = 1; id < IDS; id++) {
        const ad_buffer *b = ad__buffers_find(&s->buffers, id);
        count += b != NULL;
        if (!b != !expected->value[id]) return 4;
        if (!b) continue;
        if (!b->poison != !expected->lost[id]) return 5;
        if (!b->poison && !expected->gone[id] && get_value(s, id) != expected->value[id]) return 6;
    }
    return count == s->buffers.count ? 0 : 7;
}

static void check_image(int image, const model *expected, const char *what, int round, uint64_t rows) {
    int status;
    const pid_t child = fork();
    if (!child) _exit(recover_image(dup(image), expected));
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "round %d, %s, %lu rows: %d", round, what,
              (unsigned long)rows, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

/* Change an array: it is made, freed, or written in place. */
static void change_something(ad_worker_session *s, model *now, uint64_t *seed) {
    const uint64_t id = 1 + random64(seed) % (IDS - 1);
    const int64_t value = 1 + (int64_t)(random64(seed) % 1000);
    ad_buffer *b = ad__buffers_find(&s->buffers, id);
    if (!b) {
        cr_assert_not_null(make_buffer(s, id, value));
        now->value[id] = value;
    } else if (random64(seed) % 2) {
        now->gone[id] = !s->checkpoint.behind;
        free_buffer(s, id);
        now->value[id] = 0;
    } else {
        const bool seen = random64(seed) % 2;
        now->lost[id] |= seen && b->place && !b->apart;
        b->block.open = seen; /* others see its memory, so it is not copied before the change */
        ad__checkpoint_before_write(s, b, s->progress.done + 1, "add");
        b->block.open = false;
        for (int i = 0; i < ELEMENTS; i++) ((int64_t *)b->address)[i] = value;
        s->progress.done++;
        ad__checkpoint_mark_executed(&s->checkpoint);
        now->value[id] = value;
    }
}

/* Get the model that is restored while the changes since the committed checkpoint are not committed. */
static model get_uncommitted(const model *committed, const model *now) {
    model m = *committed;
    for (int id = 0; id < IDS; id++) {
        m.lost[id] = committed->value[id] && now->lost[id];
        m.gone[id] = now->gone[id];
    }
    return m;
}

/* In the image, undo what was copied into the table of all but the first rows of the committed log. False: the table
 * has moved, so nothing was. */
static bool undo_rows(int image, int before, ad_at session, uint64_t from) {
    struct stat st;
    cr_assert_eq(fstat(image, &st), 0);
    char *new = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, image, 0);
    char *old = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED | MAP_NORESERVE, before, 0);
    cr_assert(new != MAP_FAILED &&old != MAP_FAILED);
    const ad_journal_session *at = (const ad_journal_session *)(void *)(new + session);
    const ad_journal_checkpoint *state = &at->checkpoint[at->current];
    const ad_journal_log *log = (const ad_journal_log *)(void *)(new + state->log);
    const bool same = ((const ad_journal_session *)(void *)(old + session))->table == at->table;
    ad_journal_table *t = (ad_journal_table *)(void *)(new + at->table);
    const ad_journal_table *u = (const ad_journal_table *)(void *)(old + at->table);
    for (uint64_t i = from; same && i < state->entries; i++) t->row[log->entry[i].place] = u->row[log->entry[i].place];
    munmap(new, (size_t)st.st_size);
    munmap(old, (size_t)st.st_size);
    return same;
}

Test(recover, from_each_prefix_of_a_log) {
    ad_worker *w = start_worker();
    ad_worker_session *s = fake_session(w, 1, "alice");
    model committed = {0}, now = {0};
    uint64_t seed = 5, variants = 0;
    ad__checkpoint_list(s);
    ad__checkpoint_commit(s);
    const ad_at session = ad__journal_at(w->journal, s->checkpoint.at);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CHANGES; i++) change_something(s, &now, &seed);
        take_slabs(fake_arrayd());
        int before = copy_file(ad__journal_descriptor(w->journal));
        const model then = get_uncommitted(&committed, &now);
        check_image(before, &then, "before the commit", round, 0);
        ad__checkpoint_commit(s);
        memset(now.lost, 0, sizeof now.lost);
        memset(now.gone, 0, sizeof now.gone);
        committed = now;
        const ad_journal_session *at = s->checkpoint.at;
        const uint64_t rows = at->checkpoint[at->current].entries;
        cr_assert_gt(rows, 0);
        for (uint64_t k = 0; k <= rows; k++) {
            int image = copy_file(ad__journal_descriptor(w->journal));
            if (undo_rows(image, before, session, k)) {
                check_image(image, &committed, "after the commit", round, k);
                variants++;
            }
            close(image);
        }
        close(before);
    }
    cr_assert_gt(variants, ROUNDS);
    end_session(s);
    ad__sharing_close(w);
    fake_worker_close(w);
}

/* Check, in another process, what is found in a copy of the worker's journal. */
static void check_in_child(const ad_worker *w, int (*find)(int image)) {
    const int image = copy_file(ad__journal_descriptor(w->journal));
    const pid_t child = fork();
    int status;
    if (!child) _exit(find(image));
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0, "%d", WEXITSTATUS(status));
    close(image);
}

/* In another process: find the array that was lost for its memory, without memory. Returns the exit status. */
static int find_without_memory(int image) {
    const ad_worker_session *s = recover_session(image);
    const ad_buffer *b = s ? ad__buffers_find(&s->buffers, 1) : NULL;
    if (!b) return 2;
    if (!b->poison || !strstr(b->poison->text, "used again")) return 3;
    return b->block.slab || s->held.buffer_bytes ? 4 : 0;
}

Test(recover, memory_that_was_used_again_is_not_restored) {
    ad_worker *w = start_worker();
    ad_worker_session *s = fake_session(w, 1, "alice");
    ad__checkpoint_list(s);
    const ad_buffer *b = make_buffer(s, 1, 5);
    ad__checkpoint_commit(s);
    take_slabs(fake_arrayd());
    ad__checkpoint_record_loss(s, b->place);
    check_in_child(w, find_without_memory);
    end_session(s);
    ad__sharing_close(w);
    fake_worker_close(w);
}

/* Write a capability of some memory, which a session that has ended has used up or not, into the journal. */
static void write_capability(ad_worker *w, const ad_shared *m, uint64_t number, bool used_up) {
    ad_journal_holder *h = ad__journal_alloc(w->journal, sizeof *h);
    cr_assert_not_null(h);
    *h = (ad_journal_holder){.kind = AD_HOLDER_CAPABILITY,
                             .who = "alice",
                             .memory = ad__checkpoint_memory_row(w, m),
                             .half = {number, number},
                             .uses = 1,
                             .by = used_up ? 99 : 0,
                             .expires = INT64_MAX};
    cr_assert_neq(ad__journal_hold(w->journal, h), 0);
}

/* In another process: recover what two capabilities had. Returns the exit status. */
static int find_capability_left(int image) {
    const ad_worker_session *s = recover_session(image);
    const ad_sharing *all = s ? s->worker->sharing : NULL;
    if (!all) return 2;
    if (all->capabilities != 1 || all->count != 1) return 3;
    const ad_issued_capability *c = all->capability[8];
    if (!c || c->holder.shared->holders != 1) return 4;
    return *(const int64_t *)c->holder.shared->address == 5 ? 0 : 5;
}

/* The first capability in the journal is over, and with it goes the last holder so far. */
Test(recover, memory_stays_for_a_capability_behind_one_that_is_over) {
    ad_worker *w = start_worker();
    ad_worker_session *s = fake_session(w, 1, "alice"), *gone = fake_session(w, 2, "alice");
    ad__checkpoint_list(s);
    ad__checkpoint_commit(s);
    const ad_shared *m = ad__shared_of(gone, make_buffer(gone, 1, 5));
    take_slabs(fake_arrayd());
    write_capability(w, m, 7, true);
    write_capability(w, m, 8, false);
    check_in_child(w, find_capability_left);
    end_session(gone);
    end_session(s);
    ad__sharing_close(w);
    fake_worker_close(w);
}
