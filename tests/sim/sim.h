/* The simulator: front, workers and clients in one process, one at a time, over a virtual clock and a seed.
 *
 *     seed ──▶ scheduler ──▶ one task (a coroutine) of one simulated process runs until its next call
 *                 ▲                        │ read, sendmsg, mmap, pthread_mutex_lock, uv_run ...
 *                 └──── time, faults ◀─────┘ defined here (calls of the system: by the linker's --wrap)
 *
 * A simulated process is a copy of a shared object that has the program's objects, and its main. So it has globals of
 * its own. Its memory, mappings and descriptors end with it, as the kernel would end them. */
#ifndef AD_SIM_H
#define AD_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <ucontext.h>

#define SIM_DESCRIPTORS 1024 /* most descriptors of a process */
#define SIM_BYSTANDER 1000   /* the user whose clients nothing happens to */
#define SIM_OTHER 1001
#define SIM_PRINCIPALS "/sim/principals" /* the file that says what users may do */

typedef struct sim_task sim_task;
typedef struct sim_process sim_process;
typedef struct sim_file sim_file;

/* ---- chance (chance.c) ---- */

/* Begin the sequence of a seed. */
void sim_seed_chance(uint64_t seed);
/* Draw a number below n. */
uint64_t sim_draw_below(uint64_t n);
/* Draw whether something happens, in so many of a million cases. */
bool sim_draw_case(unsigned in_million);
/* Fill memory with drawn bytes. */
void sim_draw_bytes(void *out, size_t size);

/* ---- what a seed switches on (plan.c) ---- */

typedef struct sim_plan {
    uint64_t seed;
    unsigned switches;      /* all in a million: switch to another task at a call */
    unsigned splits;        /* a read or a write moves fewer bytes than it could */
    unsigned delays;        /* bytes arrive later */
    unsigned late_events;   /* a descriptor that is ready is not told of yet */
    unsigned spurious;      /* a wait for a condition ends without a signal */
    unsigned drops;         /* a connection of a client breaks */
    unsigned worker_kills;  /* a worker is killed at a call */
    unsigned store_kills;   /* a worker is killed at a store into its journal */
    unsigned kill_at_store; /* the number of the store at which a worker is killed; 0: none */
    unsigned kill_again;    /* how many stores later the next worker is killed; 0: it is not */
    unsigned client_kills;  /* a client is killed at a call */
    unsigned most_kills;    /* of workers, by chance */
    unsigned no_descriptor; /* a call finds no free descriptor */
    unsigned no_memory;     /* an allocation of a worker fails */
    unsigned fail_who;      /* what fails once: 1 a worker, 2 the front, 3 the client of another user; 0: nothing */
    unsigned fail_what;     /* resource that fails: memory, a descriptor or a mapping (sim_resource) */
    unsigned fail_at;       /* number of the use that fails */
    unsigned room;          /* bytes that fit into a socket */
    unsigned clients, operations;
    unsigned upgrades; /* how often the server is upgraded */
    unsigned script;   /* number of the script whose steps each client takes; no faults but those that are set later */
    bool late;         /* the backend completes operations later */
    bool shares;       /* clients give arrays to others, and map memory */
    bool fatal;        /* there are operations that workers die of */
    bool spill;        /* devices are small, so that arrays move to host memory and back */
    bool moves;        /* clients build kernels, so that their user gets a worker of its own */
    bool forks;        /* clients go on as children whose parents are gone */
    bool events;       /* clients look again at events that were reached */
    bool bursts;       /* clients send many operations without a question */
    bool indices;      /* clients read and write by indices, some of which are out of bounds */
    bool commons;      /* clients write into arrays that they have in common, and use capabilities together */
    unsigned quota;    /* most bytes of SIM_OTHER on a device; 0: all of it */
} sim_plan;

extern sim_plan sim_planned;
/* Choose by the seed what this run has. */
void sim_make_plan(uint64_t seed);
/* Switch on what others need, once all members are set. */
void sim_finish_plan(void);
/* Set a member by its name. False: there is none. */
bool sim_set_plan(const char *name, uint64_t value);
void sim_print_plan(void);

/* ---- what fails once (failing.c) ---- */

typedef enum sim_resource { SIM_MEMORY, SIM_DESCRIPTOR, SIM_MAPPING, SIM_WATCH, SIM_RESOURCES } sim_resource;

/* Count a use of a resource by the program that the plan names, and tell whether this one fails. */
bool sim_must_fail(sim_resource what);
extern unsigned sim_uses; /* of the resource that the plan names, since a session has begun */

/* ---- tasks (tasks.c) ---- */

typedef bool sim_ready(sim_task *task, void *what);

struct sim_task {
    ucontext_t context;
    sim_task *next;
    sim_process *process;
    void *(*run)(void *);
    void *argument, *result, *stack;
    sim_ready *ready; /* NULL: it can run */
    void *what;
    const char *doing;
    int64_t deadline; /* ns; INT64_MAX: none */
    void *condition;  /* that it waits for, until it is signalled */
    void *locals;     /* its thread-local variables of the process's program */
    int number, error;
    bool done, joined, detached;
};

extern sim_task *sim_current; /* NULL: the scheduler */
extern int64_t sim_time;      /* ns of the virtual clock */

sim_task *sim_add_task(sim_process *p, void *(*run)(void *), void *argument);
/* Wait until ready says so, or until the deadline. False: the deadline has come first. */
bool sim_wait(const char *doing, sim_ready *ready, void *what, int64_t deadline);
/* Let time pass at a call of the program, and perhaps another task run. */
void sim_pass_call(const char *name);
/* Leave the current task for good. */
_Noreturn void sim_leave_task(void);
/* Run until nothing is left to run, or something is wrong. */
void sim_run_tasks(void);
sim_task *sim_find_task(int number);
/* Wake one of those who wait for a condition, or all. */
void sim_signal_condition(void *condition, bool all);
void sim_free_tasks(sim_process *p);
/* End all tasks of the current process but the current one, as a fork does in the child. */
void sim_end_other_tasks(void);
/* Print what each task waits for. */
void sim_print_tasks(void);

/* ---- processes (processes.c) ---- */

typedef struct sim_mapping {
    struct sim_mapping *next;
    char *begin, *end;
    bool journal;
} sim_mapping;

struct sim_process {
    sim_process *next, *parent;
    const char *program;
    int number;
    unsigned user;
    void *library, *backend;
    struct sim_backend *crashes; /* NULL: its backend does not end it */
    int (*main)(int, char **);
    int argc;
    char **argv;
    const char *next_program; /* that takes its place, with argv; NULL: none */
    sim_file *file[SIM_DESCRIPTORS];
    bool close_on_exec[SIM_DESCRIPTORS];
    sim_mapping *mappings;
    struct sim_heap *heap;
    struct sim_loop *loops;
    void *uv; /* its parent's handle */
    void (*on_exit)(void *uv, int64_t status, int signal);
    const void *locals_image;
    size_t locals_size, locals_image_size;
    int status, signal;
    unsigned signals; /* pending ones, by bit */
    bool ended, dying, told;
    unsigned long stores; /* into its journal */
    void (*before_fork)(void), (*in_child)(void);
};

extern sim_process *sim_processes;
/* Start a program: a copy of its shared object. descriptors: what it has from 0 on. */
sim_process *sim_start_process(const char *program, unsigned user, int argc, char **argv, int count, sim_file **files);
/* End a process as a signal would. Does not return if it is the current one. */
void sim_kill_process(sim_process *p, int signal);
_Noreturn void sim_exit_process(int status);
/* Go on as another program, with the descriptors that are not closed by that, as execve does. */
_Noreturn void sim_replace_process(const char *program, char *const argv[]);
/* Go on as the child of a fork whose parent ends at once. */
void sim_become_child(void);
/* Take apart the processes that have ended. */
void sim_reap_processes(void);
sim_process *sim_find_process(int number);
/* The path that a program is told it has. */
const char *sim_program_path(const char *program);
/* The folder of the backend. */
const char *sim_backend_folder(void);
void sim_set_build(const char *build);
/* Load so many copies of a program or of the backend, for the seeds that run after this. */
void sim_prepare_copies(const char *program, int count);
sim_process *sim_self(void);

/* ---- memory (heap.c) ---- */

struct sim_heap *sim_heap_open(void);
void sim_heap_close(struct sim_heap *h);
/* Allocate zeroed numbers for the process, which does not fail by a fault. */
int64_t *sim_make_numbers(int64_t count);
/* Bytes in use. */
size_t sim_heap_used(const struct sim_heap *h);

/* ---- stores into journals (stores.c) ---- */

/* Watch a mapping: each store into it is counted, and may end the process. */
void sim_watch_stores(sim_mapping *m);
void sim_catch_stores(void);
/* Let the next run record how many stores there are at each call, and those after it watch stores only from the last
 * call before a store on. */
void sim_record_stores(void);
void sim_watch_before(unsigned store);
void sim_count_call(void);
extern unsigned sim_stores; /* into journals, since a session has begun */
/* Copy in the place of the kernel, which no signal of the process interrupts. */
void sim_copy_as_kernel(char *to, const void *from, size_t size);

/* ---- descriptors (files.c, sockets.c, events.c) ---- */

typedef enum sim_kind { SIM_REAL, SIM_SOCKET, SIM_LISTENER, SIM_COUNTER, SIM_TIMER, SIM_POLLER, SIM_PID } sim_kind;

typedef struct sim_piece {
    struct sim_piece *next;
    sim_file **files;
    size_t count, size, used;
    struct ucred sender;
    int64_t due;
    char data[];
} sim_piece;

typedef struct sim_watch {
    struct sim_watch *next;
    sim_file *file;
    unsigned events;
    uint64_t data;
} sim_watch;

struct sim_file {
    sim_kind kind;
    int uses, real, flags;
    /* a socket */
    int type, error;
    bool read_shut, write_shut, told_sender, of_client, journal;
    sim_file *peer, *pending;
    sim_piece *first, **last;
    size_t queued;
    struct ucred owner, other;
    int64_t receive_wait, send_wait;
    char path[108];
    sim_file *next_listener;
    /* others */
    uint64_t counter;
    int64_t due;
    int process;
    sim_watch *watches;
};

sim_file *sim_file_new(sim_kind kind);
sim_file *sim_file_keep(sim_file *f);
void sim_file_drop(sim_file *f);
sim_file *sim_file_get(int fd);                               /* NULL: errno is EBADF */
int sim_file_put(sim_file *f, int least, bool close_on_exec); /* takes the reference; -1: errno is EMFILE */
int sim_file_close(sim_process *p, int fd);
unsigned sim_file_poll(const sim_file *f); /* POLLIN and so on */
/* When the file may become ready by time alone. */
int64_t sim_file_due(const sim_file *f);

void sim_socket_close(sim_file *f);
unsigned sim_socket_poll(const sim_file *f);
int64_t sim_socket_due(const sim_file *f);
void sim_socket_break(sim_file *f); /* as if a network had failed: what is on its way is lost */
void sim_pair_make(int type, sim_file *end[2]);
int sim_sockets_of_clients(sim_file **out, int most);

/* ---- arrays that clients have given to others (shared.c) ---- */

#define SIM_SHARED 64
#define SIM_SLOTS 8 /* first elements of an array in common: each is written by one session */

typedef struct sim_shared {
    int number, owner; /* the process that has published it */
    unsigned user;
    int64_t count, *value;
    unsigned char capability[24];
    bool by_name, by_capability, withdrawn, maybe_lost;
    int limit, trying, uses; /* most uses of the capability, 0: any number; attempts at present; uses so far */
    /* Of an array in common: slots that have a writer, and its last numbers that it has asked for and that somebody
     * has seen. Sessions whose last change is not yet behind an answer, and the deaths of workers at the first. */
    bool common;
    int slots;
    int64_t asked[SIM_SLOTS], seen[SIM_SLOTS];
    unsigned pending, deaths;
} sim_shared;

/* Remember an array that the current process gives to others. NULL: there are too many. */
sim_shared *sim_shared_add(int64_t n, const int64_t *value, bool maybe_lost);
unsigned sim_shared_count(void);
/* Choose one of them. NULL: there is none. */
sim_shared *sim_shared_choose(void);
/* Tell whether nobody has asked this before. */
bool sim_shared_is_first(void);
extern bool sim_shared_crossed; /* a user has got an array of another one, and may have to pay for it one day */
/* Find the latest capability with a limit, of a user. NULL: there is none. */
sim_shared *sim_shared_latest(unsigned user);

/* ---- what happened (trace.c) ---- */

extern bool sim_tracing;
extern uint64_t sim_hash; /* of all events so far */
/* Record an event: into the hash always, as a line when tracing. */
void sim_note(const char *what, long a, long b);
void sim_note_text(const char *what, const char *text, size_t size);
/* Record that something is wrong; the run ends. */
void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern bool sim_failed;
extern unsigned sim_worker_deaths;
extern bool sim_serving; /* a session has begun: from here on processes may be killed */

#endif
