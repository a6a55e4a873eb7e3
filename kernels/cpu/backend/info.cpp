/* The names of the host's processors, and the memory that they may use. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cpu/backend/device.h"

namespace {

/* Call f(line) for each line of a file until it returns true. */
template <class F> void each_line(const char *path, F f) {
    FILE *file = fopen(path, "re");
    if (!file) return;
    char line[512];
    while (fgets(line, sizeof line, file))
        if (f(line)) break;
    fclose(file);
}

/* A line of /proc/meminfo, in bytes. */
uint64_t memory(const char *format) {
    uint64_t kib = 0;
    each_line("/proc/meminfo", [&](const char *line) { return sscanf(line, format, &kib) == 1; });
    return kib * 1024;
}

uint64_t limit_in(const char *folder, const char *group, const char *file) {
    char path[640];
    uint64_t limit = UINT64_MAX;
    snprintf(path, sizeof path, "%s%s/%s", folder, group, file);
    each_line(path, [&](const char *line) { return sscanf(line, "%" SCNu64, &limit) == 1; });
    return limit;
}

/* The limit of the control group that this process is in; in a container its path may not exist, the root does. */
uint64_t group_limit() {
    char group[400] = "";
    uint64_t limit = UINT64_MAX, here;
    each_line("/proc/self/cgroup", [&](const char *line) { return sscanf(line, "0::%399[^\n]", group) == 1; });
    const char *const groups[] = {group, ""};
    for (const char *name : groups) {
        here = limit_in("/sys/fs/cgroup", name, "memory.max");
        if (here < limit) limit = here;
    }
    here = limit_in("/sys/fs/cgroup/memory", "", "memory.limit_in_bytes");
    return here < limit ? here : limit;
}

} // namespace

void ad_cpu_device_info(ad_device_info *info) {
    uint64_t total = memory("MemTotal: %" SCNu64), available = memory("MemAvailable: %" SCNu64), limit = group_limit();
    memset(info, 0, sizeof *info);
    info->peers = UINT64_MAX;
    info->memory = limit < total || total == 0 ? limit : total;
    info->free = available < info->memory ? available : info->memory;
    snprintf(info->name, sizeof info->name, "cpu");
    each_line("/proc/cpuinfo",
              [&](const char *line) { return sscanf(line, "model name : %63[^\n]", info->name) == 1; });
}
