/* What happened: a hash of all events, and lines for a reader. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

bool sim_tracing, sim_failed, sim_serving;
uint64_t sim_hash = 0xcbf29ce484222325u;
unsigned sim_worker_deaths;

static void add_to_hash(const void *data, size_t size) {
    for (const unsigned char *p = data, *end = p + size; p < end; p++) sim_hash = (sim_hash ^ *p) * 0x100000001b3u;
}

static void print_head(void) {
    const sim_task *t = sim_current;
    fprintf(stderr, "%13.6f ms  ", (double)sim_time / 1e6);
    if (t) fprintf(stderr, "%s %d/%d  ", t->process->program, t->process->number, t->number);
}

void sim_note(const char *what, long a, long b) {
    const long numbers[] = {sim_current ? sim_current->number : 0, a, b, (long)sim_time};
    add_to_hash(what, strlen(what));
    add_to_hash(numbers, sizeof numbers);
    if (!sim_tracing) return;
    print_head();
    fprintf(stderr, "%s %ld %ld\n", what, a, b);
}

void sim_note_text(const char *what, const char *text, size_t size) {
    add_to_hash(text, size);
    if (!sim_tracing) return;
    print_head();
    fprintf(stderr, "%s: %.*s%s", what, (int)size, text, size && text[size - 1] == '\n' ? "" : "\n");
}

void sim_fail(const char *format, ...) {
    va_list arguments;
    sim_failed = true;
    fprintf(stderr, "seed %llu, %.6f ms: ", (unsigned long long)sim_planned.seed, (double)sim_time / 1e6);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    if (sim_tracing) sim_print_tasks();
}
