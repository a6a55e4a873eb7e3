/* Failures on demand, so that tests reach what hardware seldom does. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/fault.h"

namespace {

struct name_row {
    const char *name;
    int value;
};

const name_row sites[] = {
#define AD_SITE(name, status) {#name, AD_SITE_##name},
    AD_SITES(AD_SITE)
#undef AD_SITE
};
const int defaults[] = {
#define AD_SITE(name, status) status,
    AD_SITES(AD_SITE)
#undef AD_SITE
};
const name_row statuses[] = {{"killed", AD_FAULT_KILLED},
                             {"memory", AD_E_MEMORY},
                             {"device", AD_E_DEVICE},
                             {"lost", AD_E_DEVICE_LOST},
                             {"system", AD_E_SYSTEM}};

template <size_t N> bool find(const name_row (&rows)[N], const char *name, size_t length, int *value) {
    for (const name_row &row : rows) {
        if (strlen(row.name) != length || memcmp(row.name, name, length) != 0) continue;
        *value = row.value;
        return true;
    }
    return false;
}

/* Parse one SITE:N or SITE:N:STATUS. */
bool parse_item(ad_faults *faults, const char *item, size_t length) {
    const char *end = item + length, *colon = static_cast<const char *>(memchr(item, ':', length));
    int site, status;
    if (!colon || !find(sites, item, size_t(colon - item), &site)) return false;
    char *after;
    uint64_t n = strtoull(colon + 1, &after, 10);
    if (after == colon + 1 || n == 0 || after > end) return false;
    status = defaults[site];
    if (after < end && (*after != ':' || !find(statuses, after + 1, size_t(end - after - 1), &status))) return false;
    faults->site[site].fails = n;
    faults->site[site].status = status;
    return true;
}

} // namespace

int ad_faults_parse(ad_faults *faults, const char *text, ad_fault *fault) {
    if (!text) return 0;
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        if (!parse_item(faults, text, length))
            return ad__fault(fault, AD_E_VALUE, "ARRAYD_FAULT: \"%.*s\" is not SITE:N or SITE:N:STATUS", int(length),
                             text);
        text += length + (text[length] == ',');
    }
    return 0;
}

bool ad_faults_due(ad_faults *faults, int site) {
    auto &s = faults->site[site];
    return s.fails != 0 && s.calls.fetch_add(1) + 1 == s.fails;
}

int ad_faults_check(ad_faults *faults, int site, ad_fault *fault) {
    const int status = faults->site[site].status;
    if (ad_faults_due(faults, site)) {
        if (status == AD_FAULT_KILLED) raise(SIGKILL);
        if (status == AD_E_DEVICE_LOST) faults->lost.store(true);
        return ad__fault(fault, status, "%s failed as ARRAYD_FAULT asked", sites[site].name);
    }
    if (faults->lost.load()) return ad__fault(fault, AD_E_DEVICE_LOST, "the device is lost, as ARRAYD_FAULT asked");
    return 0;
}
