/* The host's resources that processes use, as the kernel counts them. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/front/front.h"

/* Read a file of /proc/PID as text: "" if the process has gone, or is hidden. */
static void read_process_file(int pid, const char *name, char *out, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
    if (fd >= 0) close(fd);
    out[n > 0 ? n : 0] = 0;
}

static uint64_t count_descriptors(int pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *folder = opendir(path);
    uint64_t n = 0;
    for (struct dirent *e; folder && (e = readdir(folder));) n += *e->d_name != '.';
    if (folder) closedir(folder);
    return n;
}

bool ad__process_pulse(int pid, ad_pulse *out) {
    char text[1024], state;
    unsigned long user, system;
    /* The name in parentheses may contain any characters. */
    read_process_file(pid, "stat", text, sizeof text);
    const char *after = strrchr(text, ')');
    if (sscanf(after ? after + 1 : "", " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state, &user, &system) !=
        3)
        return false;
    *out = (ad_pulse){.state = state, .ticks = user + system};
    return true;
}

void ad__process_cost(int pid, ad_process_cost *out) {
    char text[1024];
    unsigned long all, resident;
    ad_pulse pulse;
    *out = (ad_process_cost){0};
    if (!pid) return;
    read_process_file(pid, "statm", text, sizeof text);
    if (sscanf(text, "%lu %lu", &all, &resident) == 2)
        out->resident = (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
    if (ad__process_pulse(pid, &pulse)) out->cpu = (double)pulse.ticks / (double)sysconf(_SC_CLK_TCK);
    out->descriptors = count_descriptors(pid);
}
