/* What a user may ask of the compiler: the list of options that are allowed, and the sizes. */
#ifndef AD_SERVER_COMPILE_OPTIONS_H
#define AD_SERVER_COMPILE_OPTIONS_H

#include "kernels/compile.h"

/* Options as the compiler is given them. */
typedef struct ad_compile_words {
    char *text;   /* where they lie */
    char **words; /* n of them */
    size_t n;
} ad_compile_words;

/* Is this a job that may be compiled? AD_E_LIMIT, AD_E_VALUE, AD_E_DENIED; the fault names the option, name or header
 * and says what was expected. */
int ad__compile_check(const ad_compile_job *job, ad_fault *fault);
/* The user's options of a job that passed, for its target: what only a GPU knows is left out for the host. AD_E_MEMORY.
 * Free with ad__compile_words_free, also after a failure. */
int ad__compile_words(const ad_compile_job *job, ad_compile_words *out, ad_fault *fault);
void ad__compile_words_free(ad_compile_words *words);

#endif
