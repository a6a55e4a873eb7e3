#include "server/worker/memory/buffer_total.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"

ad_buffer_total *ad__buffer_total_open(ad_buffer_total **list, const char *principal, uint64_t most) {
    ad_buffer_total *t = *list;
    while (t && strcmp(t->principal, principal)) t = t->next;
    if (!t) {
        if (!(t = ad__os.calloc(1, sizeof *t))) return NULL;
        snprintf(t->principal, sizeof t->principal, "%s", principal);
        t->next = *list;
        *list = t;
    }
    atomic_store(&t->most, most);
    t->users++;
    return t;
}

void ad__buffer_total_close(ad_buffer_total **list, ad_buffer_total *t) {
    if (--t->users) return;
    while (*list != t) list = &(*list)->next;
    *list = t->next;
    free(t);
}
