/* What the parts of modules share. */
#ifndef AD_SERVER_WORKER_MODULES_INSIDE_H
#define AD_SERVER_WORKER_MODULES_INSIDE_H

#include "server/worker/modules/variables.h"
#include "server/worker/net/session.h"

typedef struct ad_named_kernel ad_named_kernel;
struct ad_named_kernel {
    ad_named_kernel *next;    /* the one used last comes first */
    ad_kernel *kernel;        /* NULL: not asked for yet */
    int64_t shared, carveout; /* that have been set; negative: have not */
    bool cooperative;         /* blocks of its launches run all at once */
    size_t size;
    char name[];
};

struct ad_loaded {
    ad_loaded *next;
    uint64_t id;
    ad_gpu *gpu;
    ad_module *module; /* NULL: as long as it has not been built again */
    unsigned users;    /* the session's table, and buffers that are its variables */
    uint64_t last_op;  /* number of the last operation that may use it */
    ad_named_kernel *kernels;
    size_t nnames; /* of name expressions: */
    char **names;  /* as the client knows them, then as the module does */
    ad_variables variables;
    bool touched;              /* another worker would have other variables */
    ad_module_loss loss;       /* why this one has not got it */
    bool said;                 /* that it could not be built again */
    uint32_t place;            /* its row's in the journal; 0: it has none */
    ad_journal_recipe *recipe; /* in the journal; NULL: nothing is written down */
};

struct ad_building {
    ad_gpu *gpu;
    ad_arena arena;
    ad_compile_job job;
    const char *const *names; /* the client's */
    size_t nnames;
    const ad_binary *binary;
    int status; /* what the compiler said last; 0: not yet */
    ad_fault fault;
    int64_t since, next;
};

/* ---- modules.c ---- */
/* NULL: there is none. It is the first from then on. */
ad_loaded *ad__module_find(ad_session *s, uint64_t id);
void ad__module_add(ad_session *s, ad_loaded *m);
/* Of one that is in no list. */
void ad__module_free(ad_session *s, ad_loaded *m);
/* One of that name, of which nothing is set and the backend knows nothing. NULL: no memory. */
ad_named_kernel *ad__module_kernel(ad_loaded *m, const char *name, size_t size);
/* A message's text as one that ends with a NUL; NULL with a fault. */
const char *ad__module_text(ad_session *s, const ad_string *text, ad_fault *fault);

/* ---- build.c ---- */
/* BUILD; false: the session waits. */
bool ad__module_build(ad_session *s, ad_message *m);
/* Whatever is being built is given up. */
void ad__module_stop(ad_session *s);

/* ---- journal.c ---- */
/* What a module is made from, if that is to be written down. AD_E_MEMORY, AD_E_LIMIT. */
int ad__recipe_new(ad_session *s, const ad_building *b, ad_text source, const ad_string *options, size_t noptions,
                   ad_journal_recipe **out, ad_fault *fault);
/* NULL is allowed. */
void ad__recipe_release(ad_journal *l, ad_journal_recipe *r);
/* The pieces of text behind the source, NUL-ended: options, then name expressions. */
void ad__recipe_words(const ad_journal_recipe *r, const char **word);

#endif
