/* The configuration of arrayd and arrayd-worker, one member per row of protocol/option.def. */
#ifndef AD_SERVER_CONFIG_H
#define AD_SERVER_CONFIG_H

#include "protocol/base.h"

#define AD_CONFIG_STRING char *
#define AD_CONFIG_SIZE uint64_t
#define AD_CONFIG_AUTO_SIZE uint64_t /* UINT64_MAX: auto */
#define AD_CONFIG_COUNT uint64_t
#define AD_CONFIG_BOOL bool
#define AD_CONFIG_SECONDS double

typedef struct ad_config {
#define AD_OPTION(name, field, type, value, doc) AD_CONFIG_##type field;
#include "protocol/option.def"
#undef AD_OPTION
} ad_config;

/* An argument of the command line that is not an option: a whole number that one of our programs gives another. */
typedef struct ad_config_private {
    const char *name;
    int *value;
} ad_config_private;

typedef enum ad_config_action { AD_CONFIG_RUN, AD_CONFIG_HELP, AD_CONFIG_VERSION } ad_config_action;

/* Load the defaults, then the file of --config, the environment and the command line; later values replace earlier
 * ones. private ends with a row of NULL; NULL: there are none. *action is what the command line asks for.
 * AD_E_VALUE, AD_E_MEMORY, AD_E_SYSTEM; the fault names the option, the source of its value, and what was expected.
 * *c needs ad__config_free either way. */
int ad__config_load(ad_config *c, int argc, char **argv, const ad_config_private *private, ad_config_action *action,
                    ad_fault *fault);
void ad__config_free(ad_config *c);
/* Set one option from text; source names the text's origin in the fault. */
int ad__config_set(ad_config *c, const char *name, const char *value, const char *source, ad_fault *fault);
/* Read the text of a value of one type. False: it is not one. */
bool ad__config_parse_count(const char *text, uint64_t *out);
bool ad__config_parse_size(const char *text, uint64_t *out);
bool ad__config_parse_bool(const char *text, bool *out);
bool ad__config_parse_seconds(const char *text, double *out);
/* Make the text of --help, which the caller frees; NULL: no memory. */
char *ad__config_help(const char *program);
/* Make a list of all options as "--name=value" with NULL at the end. It is one block, which the caller frees; NULL:
 * no memory. */
char **ad__config_arguments(const ad_config *c);

#endif
