/* Keys of a terminal, read one by one while a view is shown. */
#ifndef AD_SERVER_CTL_KEYS_H
#define AD_SERVER_CTL_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

typedef struct ad_screen {
    bool is_terminal;
    size_t rows, columns; /* 0: not known */
} ad_screen;

typedef struct ad_keys {
    bool on; /* keys are read: standard input and output are a terminal */
    struct termios before;
} ad_keys;

/* Begin to read keys, where there is a terminal and `wanted`. */
void ad__keys_begin(ad_keys *k, bool wanted);
/* Set the terminal as it was. */
void ad__keys_end(ad_keys *k);
/* Wait for a key, at most so many seconds. 0: none was pressed. */
int ad__keys_wait(ad_keys *k, double seconds);
/* Ask for a line of text, which is shown as it is typed. False: none, or an empty one. */
bool ad__keys_read_line(ad_keys *k, const char *question, char *out, size_t size);

#endif
