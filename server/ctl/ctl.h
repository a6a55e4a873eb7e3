/* arrayctl: what an administrator does beside a running server. */
#ifndef AD_SERVER_CTL_H
#define AD_SERVER_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses. */
enum { AD_CTL_GOOD = 0, AD_CTL_BAD = 1, AD_CTL_USAGE = 2, AD_CTL_NO_SERVER = 3 };

/* The command line, once the options that all share have been taken out. */
typedef struct ad_ctl {
    const char *control, *socket; /* as given; NULL: not */
    bool json, force;
    double interval, seconds; /* 0: not given */
    uint64_t count;
    int argc; /* what is left: argv[0] is the command */
    char **argv;
} ad_ctl;

#define AD_COMMAND(name, arguments, doc) int ad__ctl_##name(ad_ctl *c);
#include "server/ctl/command.def"
#undef AD_COMMAND

/* ---- main.c ---- */
/* "arrayctl COMMAND: ..." on standard error; the status. */
int ad__ctl_error(const ad_ctl *c, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The command takes no arguments. */
int ad__ctl_alone(const ad_ctl *c);
/* The value of --name=value or --name value; *i is moved on. NULL: another option, or no value. */
const char *ad__ctl_value(const char *name, int argc, char **argv, int *i);

/* ---- ask.c: the server's control socket ---- */
/* Send a line (fd -1, or a descriptor with it), and read its answer, which is the caller's. The status, said already.
 */
int ad__ctl_ask(ad_ctl *c, const char *line, int fd, json_t **out);
/* As JSON, on standard output. */
int ad__ctl_print(const ad_ctl *c, json_t *value);
/* Where clients connect: for a socket address. False: it is too long. */
bool ad__ctl_server_path(const ad_ctl *c, char *out, size_t size);

/* ---- table.c ---- */
#define AD_TABLE_COLUMNS 12
typedef struct ad_table {
    const char *const *head; /* texts, NULL behind the last; those that begin with > are flush right */
    char **cells;
    size_t columns, count, room; /* count, room: of cells */
    bool failed;
} ad_table;

void ad__table_begin(ad_table *t, const char *const *head);
/* The next cell, row after row. */
void ad__table_add(ad_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The name of a session, and its state where that is no usual one. */
void ad__table_session(ad_table *t, const json_t *session);
void ad__table_bytes(ad_table *t, double bytes);
void ad__table_seconds(ad_table *t, double seconds);
/* Print and free it. At most so many rows; 0: all. */
void ad__table_end(ad_table *t, size_t most);
/* "1.5 GiB" */
void ad__ctl_bytes_text(double n, char out[16]);

/* Members of JSON objects; "" and 0 where there is none. */
const char *ad__json_text(const json_t *object, const char *key);
double ad__json_number(const json_t *object, const char *key);
double ad__json_counter(const json_t *object, const char *key); /* of its "counters" */

#endif
