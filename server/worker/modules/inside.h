/* Types and functions that the files of modules share. */
#ifndef AD_SERVER_WORKER_MODULES_INSIDE_H
#define AD_SERVER_WORKER_MODULES_INSIDE_H

#include "server/worker/modules/variables.h"
#include "server/worker/session.h"

typedef struct ad_named_kernel ad_named_kernel;
struct ad_named_kernel {
    ad_named_kernel *next;    /* next in the order of use */
    ad_kernel *kernel;        /* kernel of the backend; NULL: not loaded yet */
    int64_t shared, carveout; /* settings; negative: not set */
    bool cooperative;         /* all blocks of a launch run at once */
    size_t size;
    char name[];
};

struct ad_loaded {
    ad_loaded *next;
    uint64_t id;
    ad_gpu *gpu;
    ad_device_module *module; /* module of the backend; NULL: it has to be built again */
    unsigned users;           /* number of users: the session's table, and buffers that are its variables */
    uint64_t last_op;         /* last operation that may use the module */
    ad_named_kernel *kernels;
    size_t nnames; /* number of name expressions */
    char **names;  /* name expressions, then the names that the module has for them */
    ad_variables variables;
    bool touched;              /* its variables may differ from those of a newly built module */
    ad_module_loss loss;       /* why another worker's module is lost */
    bool said;                 /* the loss was logged */
    uint32_t place;            /* place of its row in the journal; 0: it has none */
    ad_journal_recipe *recipe; /* recipe in the journal; NULL: the session is not journaled */
};

struct ad_building {
    ad_gpu *gpu;
    ad_arena arena;
    ad_compile_job job;
    const char *const *names; /* name expressions of the client */
    size_t nnames;
    const ad_binary *binary;
    int status; /* last answer of the compiler; 0: it is at work */
    ad_fault fault;
    int64_t since, next;
};

/* ---- table.c ---- */
/* Find a module, and move it to the front of the list. NULL: there is none. */
ad_loaded *ad__module_find(ad_worker_session *s, uint64_t id);
void ad__module_add(ad_worker_session *s, ad_loaded *m);
/* Free a module that is in no list. */
void ad__module_free(ad_worker_session *s, ad_loaded *m);
/* Add a kernel without settings, which the backend has not loaded. NULL: no memory. */
ad_named_kernel *ad__module_kernel(ad_loaded *m, const char *name, size_t size);
/* Abandon what is being built, if anything is. */
void ad__module_stop(ad_worker_session *s);
/* Copy a message's text with a NUL at its end. NULL with a fault. */
const char *ad__module_text(ad_worker_session *s, const ad_string *text, ad_fault *fault);

/* ---- journal.c ---- */
/* Write what a module is made from into the journal, if the session is journaled. AD_E_MEMORY, AD_E_LIMIT. */
int ad__recipe_new(ad_worker_session *s, const ad_building *b, ad_text source, const ad_string *options,
                   size_t noptions, ad_journal_recipe **out, ad_fault *fault);
/* Set pointers to a recipe's texts, each NUL-terminated: options, then name expressions. */
void ad__recipe_words(const ad_journal_recipe *r, const char **word);

#endif
