/* arrayctl: the commands of an administrator for a running server. */
#ifndef AD_SERVER_CTL_H
#define AD_SERVER_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses. */
enum { AD_CTL_GOOD = 0, AD_CTL_BAD = 1, AD_CTL_USAGE = 2, AD_CTL_NO_SERVER = 3 };

/* The command line without the options that all commands share. */
typedef struct ad_ctl {
    const char *control, *socket; /* paths of the sockets as given; NULL: not given */
    bool json, force;
    double interval, seconds; /* seconds; 0: not given */
    uint64_t count;
    int argc; /* the remaining arguments; argv[0] is the command */
    char **argv;
} ad_ctl;

#define AD_COMMAND(name, arguments, doc) int ad__ctl_##name(ad_ctl *c);
#include "server/ctl/command.def"
#undef AD_COMMAND

/* ---- main.c ---- */
/* Print "arrayctl COMMAND: ..." on standard error, and return the status. */
int ad__ctl_error(const ad_ctl *c, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Check that the command has no arguments. AD_CTL_USAGE, with a message. */
int ad__ctl_alone(const ad_ctl *c);
/* Find the value of --name=value or --name value, and move *i behind it. NULL: the option is another one or has no
 * value. */
const char *ad__ctl_value(const char *name, int argc, char **argv, int *i);

/* ---- ask.c: the server's control socket ---- */
/* Send a line (fd: -1, or a descriptor to pass with it) and read the answer, which the caller owns. The exit status;
 * messages are printed here. */
int ad__ctl_ask(ad_ctl *c, const char *line, int fd, json_t **out);
/* Print a value as JSON on standard output. */
int ad__ctl_print(const ad_ctl *c, json_t *value);
/* Find the path where clients connect. False: it is too long for a socket's address. */
bool ad__ctl_server_path(const ad_ctl *c, char *out, size_t size);
/* Print that nobody listens at the path, which failed with that errno, and what may be the cause. AD_CTL_NO_SERVER. */
int ad__ctl_fail_unreachable(const ad_ctl *c, const char *path, int error);

/* ---- table.c ---- */
#define AD_TABLE_COLUMNS 12
typedef struct ad_table {
    const char *const
        *head; /* texts of the columns, NULL behind the last; columns whose text begins with > are flush right */
    char **cells;
    size_t columns, count, room; /* count, room: numbers of cells */
    size_t screen; /* characters of a line: columns that do not fit are left out, the last ones first; 0: no limit */
    const int *colour; /* of each row: a number of ANSI's, 0 for none; NULL: none */
    bool failed;
} ad_table;

void ad__table_begin(ad_table *t, const char *const *head);
/* Add the next cell; rows follow each other. */
void ad__table_add(ad_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Add a session's name, and its state unless that is active. */
void ad__table_session(ad_table *t, const json_t *session);
void ad__table_bytes(ad_table *t, double bytes);
void ad__table_seconds(ad_table *t, double seconds);
/* Print and free the table. most: rows to print; 0: all. */
void ad__table_end(ad_table *t, size_t most);
/* Format a number of bytes as in "1.5 GiB". */
void ad__ctl_bytes_text(double n, char out[16]);

/* Return the ending of a word for things of that number. */
const char *ad__ctl_plural(double n);

/* Read a member of a JSON object; "" or 0: there is none. */
const char *ad__json_text(const json_t *object, const char *key);
double ad__json_number(const json_t *object, const char *key);
double ad__json_counter(const json_t *object, const char *key); /* a member of its "counters" */

#endif
