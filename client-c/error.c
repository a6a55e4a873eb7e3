/* The last error of the calling thread. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client-c/client.h"

static _Thread_local struct {
    char text[2 * AD_FAULT_TEXT];
    char name[64];
    uint64_t number;
} last;

static void clear_operation(void) {
    last.number = 0;
    last.name[0] = 0;
}

int ad__fail(int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last.text, sizeof last.text, format, arguments);
    va_end(arguments);
    clear_operation();
    return code;
}

int ad__fail_fault(const ad_fault *fault) { return ad__fail(fault->code, "%s", fault->text); }

int ad__fail_memory(void) { return ad__fail(AD_E_MEMORY, "out of memory in this process"); }

int ad__fail_remote(int code, uint64_t number, const char *name, const char *text) {
    if (*text) ad__fail(code, "%s", text);
    else ad__fail(code, "%s", ad__error_text(code));
    last.number = number;
    snprintf(last.name, sizeof last.name, "%s", name);
    return code;
}

const char *ad_error_message(void) { return last.text; }

uint64_t ad_error_operation(const char **name) {
    if (name) *name = last.name;
    return last.number;
}

const char *ad_error_text(int status) { return ad__error_text(status); }

const char *ad_version(void) { return AD_VERSION; }
