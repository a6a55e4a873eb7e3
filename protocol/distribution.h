/* The rows of distribution.def. */
#ifndef AD_PROTOCOL_DISTRIBUTION_H
#define AD_PROTOCOL_DISTRIBUTION_H

#include "protocol/tables.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
#define AD_DISTRIBUTION(id, name, ...) AD_RANDOM_##name = (id),
#include "protocol/distribution.def"
#undef AD_DISTRIBUTION
    AD_RANDOM_LIMIT = 64
};

typedef enum ad_random_source { AD_RANDOM_BLOCK, AD_RANDOM_OWN } ad_random_source;
typedef enum ad_random_domain {
    AD_DOMAIN_NONE,
    AD_DOMAIN_ANY,
    AD_DOMAIN_NONNEG,
    AD_DOMAIN_POSITIVE,
    AD_DOMAIN_UNIT,
    AD_DOMAIN_ABOVE0,
    AD_DOMAIN_BELOW1,
    AD_DOMAIN_ABOVE1,
    AD_DOMAIN_MEAN
} ad_random_domain;

/* Sets of loops. */
#define AD_RANDOM_REAL (AD_BIT(AD_FLOAT32) | AD_BIT(AD_FLOAT64))
#define AD_RANDOM_BITS (AD_BIT(AD_UINT32) | AD_BIT(AD_UINT64))
#define AD_RANDOM_WHOLE AD_M_INT
#define AD_RANDOM_COUNT AD_BIT(AD_INT64)

typedef struct ad_distribution_row {
    const char *name, *doc;
    const char *parameter[3];
    uint32_t loops;
    uint8_t source, nparam;
    uint8_t domain[3]; /* ad_random_domain */
} ad_distribution_row;
const ad_distribution_row *ad__distribution(int64_t id); /* NULL: there is no distribution of that id */

/* Errors of parameters: 1 + i: parameter i is outside of its domain; or one of these. */
enum { AD_RANDOM_FINE, AD_RANDOM_ORDER = 4, AD_RANDOM_FLAT, AD_RANDOM_SAMPLE, AD_RANDOM_LARGE };
/* Make the fault for an error of parameters. AD_E_VALUE with NumPy's wording. */
int ad__random_fault(int64_t id, int64_t wrong, ad_fault *fault);

#ifdef __cplusplus
}
#endif
#endif
