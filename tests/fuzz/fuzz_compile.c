/* Fuzzes the frames between the worker and arrayd-compile. A frame that is read is written again as it was, and a job
 * is checked without harm. */
#include "server/compile/frame.h"
#include "server/compile/options.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_same(const ad_bytes *b, const uint8_t *data, size_t size) {
    if (b->size != size || memcmp(b->data, data, size)) abort();
}

static void check_request(const uint8_t *data, size_t size) {
    ad_compile_request r;
    ad_compile_words words = {0};
    ad_bytes b = AD_BYTES_INIT;
    ad_fault fault;
    void *lists;
    if (!ad__compile_get_request(data, size, &r, &lists, &fault)) {
        if (ad__compile_put_request(&b, &r)) abort();
        expect_same(&b, data, size);
        if (!ad__compile_check(&r.job, &fault)) {
            if (ad__compile_words(&r.job, &words, &fault)) abort();
            ad__compile_words_free(&words);
        }
    }
    ad__bytes_free(&b);
    free(lists);
}

static void check_result(const uint8_t *data, size_t size) {
    ad_compile_result r;
    ad_bytes b = AD_BYTES_INIT;
    ad_fault fault;
    void *lists;
    if (!ad__compile_get_result(data, size, &r, &lists, &fault)) {
        if (ad__compile_put_result(&b, &r)) abort();
        expect_same(&b, data, size);
    }
    ad__bytes_free(&b);
    free(lists);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_request(data, size);
    check_result(data, size);
    return 0;
}
