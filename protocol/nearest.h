/* Misspelt words: which known word was probably meant. */
#ifndef AD_PROTOCOL_NEAREST_H
#define AD_PROTOCOL_NEAREST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AD_NEAREST_WORD 47 /* longest word that is compared */

/* The nearest of the candidates so far. */
typedef struct ad_nearest {
    char word[AD_NEAREST_WORD + 1];
    const char *best; /* NULL: none is near */
    unsigned distance;
} ad_nearest;

/* Begin a search for what a word of that length was meant to be. */
void ad__nearest_begin(ad_nearest *n, const char *word, size_t length);
/* Compare a known word, which must outlive the search. Letters' case and _ for - make no difference. */
void ad__nearest_try(ad_nearest *n, const char *candidate);
/* Write "; did you mean WORD?", or "" where none is near. Returns out. */
#define AD_NEAREST_HINT (AD_NEAREST_WORD + 40)
const char *ad__nearest_hint(const ad_nearest *n, char out[AD_NEAREST_HINT]);

#ifdef __cplusplus
}
#endif
#endif
