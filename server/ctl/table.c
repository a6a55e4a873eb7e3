/* Tables for people, with columns as wide as their widest cell. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/ctl/ctl.h"

void ad__table_begin(ad_table *t, const char *const *head) {
    *t = (ad_table){.head = head};
    while (t->columns < AD_TABLE_COLUMNS && head[t->columns]) t->columns++;
}

/* Replace control characters: text from clients must not move a terminal's cursor. */
static void replace_controls(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127) *text = '?';
}

void ad__table_add(ad_table *t, const char *format, ...) {
    char *cell = NULL;
    va_list list;
    if (t->count == t->room) {
        size_t room = t->room ? 2 * t->room : 64;
        char **cells = realloc(t->cells, room * sizeof *cells);
        if (cells) {
            t->cells = cells;
            t->room = room;
        }
    }
    va_start(list, format);
    int n = t->count < t->room ? vasprintf(&cell, format, list) : -1;
    va_end(list);
    if (n < 0) {
        t->failed = true;
        return;
    }
    replace_controls(cell);
    t->cells[t->count++] = cell;
}

void ad__ctl_bytes_text(double n, char out[16]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int u = 0;
    for (; n >= 1024 && u < 5; u++) n /= 1024;
    snprintf(out, 16, n < 10 && u ? "%.1f %s" : "%.0f %s", n, units[u]);
}

const char *ad__ctl_plural(double n) { return n == 1 ? "" : "s"; }

void ad__table_session(ad_table *t, const json_t *session) {
    const char *state = ad__json_text(session, "state");
    bool usual = !strcmp(state, "active");
    ad__table_add(t, usual ? "%s%s" : "%s (%s)", ad__json_text(session, "session"), usual ? "" : state);
}

void ad__table_bytes(ad_table *t, double bytes) {
    char text[16];
    ad__ctl_bytes_text(bytes, text);
    ad__table_add(t, "%s", text);
}

void ad__table_seconds(ad_table *t, double s) {
    if (s < 120) ad__table_add(t, "%.1f s", s);
    else if (s < 7200) ad__table_add(t, "%.0f min", s / 60);
    else ad__table_add(t, "%.0f h", s / 3600);
}

/* Count characters of UTF-8, not bytes. */
static int count_characters(const char *text) {
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static void print_cell(const char *text, int width, bool right, bool last) {
    int gap = width - count_characters(text);
    if (right) printf("%*s%s", gap, "", text);
    else printf("%s%*s", text, last ? 0 : gap, "");
    if (!last) fputs("  ", stdout);
}

/* Count the columns that fit on the screen; the first one is shown in any case. */
static size_t count_fitting(const ad_table *t, const int *width) {
    size_t k = 1, used = t->columns ? (size_t)width[0] : 0;
    while (k < t->columns && (!t->screen || used + 2 + (size_t)width[k] <= t->screen)) used += 2 + (size_t)width[k++];
    return k;
}

static void print_row(const ad_table *t, const char *const *cells, const int *width, size_t columns, int colour) {
    if (colour) printf("\033[%dm", colour);
    for (size_t k = 0; k < columns; k++) {
        const bool right = *t->head[k] == '>', last = k + 1 == columns;
        print_cell(cells[k] + (cells == t->head && right), width[k], right, last);
    }
    fputs(colour ? "\033[0m\n" : "\n", stdout);
}

void ad__table_end(ad_table *t, size_t most) {
    int width[AD_TABLE_COLUMNS];
    size_t rows = t->columns ? t->count / t->columns : 0, shown = most && rows > most ? most : rows;
    for (size_t k = 0; k < t->columns; k++) width[k] = count_characters(t->head[k]) - (*t->head[k] == '>');
    for (size_t i = 0; i < shown * t->columns; i++) {
        int w = count_characters(t->cells[i]);
        if (w > width[i % t->columns]) width[i % t->columns] = w;
    }
    const size_t columns = count_fitting(t, width);
    if (t->columns) print_row(t, t->head, width, columns, 0);
    for (size_t i = 0; i < shown; i++)
        print_row(t, (const char *const *)t->cells + i * t->columns, width, columns, t->colour ? t->colour[i] : 0);
    if (shown < rows) printf("... and %zu more\n", rows - shown);
    if (t->failed) fputs("arrayctl: out of memory; the table is not whole\n", stderr);
    for (size_t i = 0; i < t->count; i++) free(t->cells[i]);
    free(t->cells);
}
