/* The agreement between a module of the cpu backend and the backend. The backend includes it; every module begins with
 * it. */
#ifndef AD_RUN_ABI_H
#define AD_RUN_ABI_H

struct uint3 {
    unsigned x, y, z;
};

namespace adrun {

/* Why a thread waits for others. */
enum wait_for {
    WAIT_BLOCK,   /* all threads of the block; the result counts those whose value is not 0, and all others above it */
    WAIT_WARP,    /* the lanes of the mask */
    WAIT_SHUFFLE, /* the same: the value of lane `other` */
    WAIT_VOTE,    /* the lanes whose value is not 0, and all of them above that */
    WAIT_MATCH,   /* the lanes that have the same value */
    WAIT_REDUCE,  /* all values, by reduce_with(other) */
    WAIT_ACTIVE,  /* as many lanes as come here before none can go on */
    WAIT_GRID     /* all threads of all blocks of a cooperative launch */
};
enum reduce_with { REDUCE_ADD, REDUCE_MIN, REDUCE_MAX, REDUCE_UMIN, REDUCE_UMAX, REDUCE_AND, REDUCE_OR, REDUCE_XOR };

/* A block of threads while it runs. Its threads run one after another: whoever calls an entry's `run` takes the next
 * that has not begun, until none is left. One that waits for others does so inside `wait`. */
struct block {
    uint3 thread, index, threads, blocks; /* threadIdx, blockIdx, blockDim, gridDim */
    unsigned current, next, count;        /* thread that runs; that begins next; how many there are */
    unsigned char *done;                  /* of each */
    void *dynamic;                        /* shared memory; always the same for one thread of the system */
    unsigned long long (*wait)(block *b, wait_for what, unsigned mask, unsigned long long value, int other);
    void (*fail)(block *b, const char *why); /* does not return */
};

/* A kernel, or a variable that a name expression names. */
struct entry {
    const char *name;
    void (*run)(void *const *argument, block *b); /* NULL: a variable */
    const unsigned *sizes;                        /* of its parameters */
    int nparameters;
    void *address; /* of the variable */
    unsigned long long size;
    entry *next;
};

} // namespace adrun
#endif
