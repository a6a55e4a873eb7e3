/* Compilers' messages, cleaned for readers who do not know this machine. */
#include <string.h>

#include "server/compile/run.h"

void ad__log_hide(char *text, const char *word) {
    size_t n = strlen(word);
    char *to = text;
    for (const char *from = text; *from;) {
        if (n && !strncmp(from, word, n)) from += n;
        else *to++ = *from++;
    }
    *to = 0;
}

void ad__log_hide_added(char *text, const char *mark) {
    for (char *at = text; (at = strstr(at, mark));) {
        char *line = strchr(at, '\n'), *end = strstr(at, "));");
        if (!end || (line && end > line)) end = line ? line : at + strlen(at);
        else end += strlen("));");
        memmove(at, end, strlen(end) + 1);
    }
}

void ad__log_cut(char *text, size_t most) {
    static const char rest[] = "... (the rest is left out)\n";
    size_t size = strlen(text);
    if (size <= most) return;
    size = most - sizeof rest;
    while (size && text[size - 1] != '\n') size--;
    strcpy(text + size, rest);
}
