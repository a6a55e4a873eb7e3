#include "protocol/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static unsigned find_least(unsigned a, unsigned b, unsigned c) {
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

static char fold_letter(char c) { return c == '_' ? '-' : (char)tolower((unsigned char)c); }

static void copy_folded(char out[AD_NEAREST_WORD + 1], const char *word, size_t length) {
    size_t n = length <= AD_NEAREST_WORD ? length : 0;
    for (size_t i = 0; i < n; i++) out[i] = fold_letter(word[i]);
    out[n] = 0;
}

/* Count the letters to insert, remove, replace, or swap with their neighbour, that make one word of the other
 * (the restricted Damerau-Levenshtein distance). */
static unsigned count_edits(const char *a, const char *b) {
    unsigned rows[3][AD_NEAREST_WORD + 1];
    const size_t n = strlen(b);
    for (size_t k = 0; k <= n; k++) rows[0][k] = (unsigned)k;
    for (size_t i = 1; a[i - 1]; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t k = 1; k <= n; k++) {
            row[k] = find_least(above[k] + 1, row[k - 1] + 1, above[k - 1] + (a[i - 1] != b[k - 1]));
            bool swapped = i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1];
            if (swapped && two_above[k - 2] + 1 < row[k]) row[k] = two_above[k - 2] + 1;
        }
    }
    return rows[strlen(a) % 3][n];
}

void ad__nearest_begin(ad_nearest *n, const char *word, size_t length) {
    copy_folded(n->word, word, length);
    n->best = NULL;
    n->distance = (unsigned)strlen(n->word) / 3 + 1; /* as many edits or more make another word */
}

void ad__nearest_try(ad_nearest *n, const char *candidate) {
    char folded[AD_NEAREST_WORD + 1];
    copy_folded(folded, candidate, strlen(candidate));
    if (!*folded || !*n->word) return;
    unsigned edits = count_edits(n->word, folded);
    if (edits >= n->distance) return;
    n->distance = edits;
    n->best = candidate;
}

const char *ad__nearest_hint(const ad_nearest *n, char out[AD_NEAREST_HINT]) {
    *out = 0;
    if (n->best) snprintf(out, AD_NEAREST_HINT, "; did you mean %s?", n->best);
    return out;
}
