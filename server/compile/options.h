/* The compiler options that users may give, and the checks of jobs. */
#ifndef AD_SERVER_COMPILE_OPTIONS_H
#define AD_SERVER_COMPILE_OPTIONS_H

#include "kernels/compile.h"

/* Options as a compiler's command line takes them. */
typedef struct ad_compile_words {
    char *text;   /* memory of the words */
    char **words; /* the n words */
    size_t n;
} ad_compile_words;

/* Check that a job may be compiled. AD_E_LIMIT, AD_E_VALUE, AD_E_DENIED; the fault names the option, name or header
 * and says what was expected. */
int ad__compile_check(const ad_compile_job *job, ad_fault *fault);
/* Translate the user's options of a job that passed ad__compile_check for its compiler. The host's compiler gets
 * none that only GPUs know. AD_E_MEMORY. Free *out with ad__compile_words_free, also after a failure. */
int ad__compile_words(const ad_compile_job *job, ad_compile_words *out, ad_fault *fault);
void ad__compile_words_free(ad_compile_words *words);

#endif
