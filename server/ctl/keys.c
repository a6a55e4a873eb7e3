/* Reading keys: see keys.h. */
#include "server/ctl/keys.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Ctrl-C arrives as a key, so that the terminal is set back before the program ends. */
static void set_keys(const ad_keys *k) {
    struct termios t = k->before;
    t.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
    t.c_cc[VMIN] = 1;
    t.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &t);
}

void ad__keys_begin(ad_keys *k, bool wanted) {
    *k = (ad_keys){0};
    k->on = wanted && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && tcgetattr(STDIN_FILENO, &k->before) == 0;
    if (k->on) set_keys(k);
}

void ad__keys_end(ad_keys *k) {
    if (k->on) tcsetattr(STDIN_FILENO, TCSADRAIN, &k->before);
    k->on = false;
}

int ad__keys_wait(ad_keys *k, double seconds) {
    struct pollfd p = {.fd = k->on ? STDIN_FILENO : -1, .events = POLLIN};
    unsigned char key;
    if (poll(&p, 1, (int)(seconds * 1000)) <= 0) return 0;
    if (read(STDIN_FILENO, &key, 1) == 1) return key;
    ad__keys_end(k); /* the terminal has gone */
    return 'q';
}

bool ad__keys_read_line(ad_keys *k, const char *question, char *out, size_t size) {
    if (!k->on) return false;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &k->before);
    fputs(question, stdout);
    fflush(stdout);
    size_t n = 0;
    for (ssize_t got; n + 1 < size && (got = read(STDIN_FILENO, out + n, 1)) == 1 && out[n] != '\n';) n++;
    out[n] = 0;
    set_keys(k);
    return n > 0;
}
