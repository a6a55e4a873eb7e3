/* Looks at a worker's health, whose worker answers as a test says: wrongly in each way, in pieces, late or not at all.
 * The linker gives the domain of that worker to this file (Makefile, WRAPS_server), in the tests of this file. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/message.h"
#include "protocol/rows_request.h"
#include "server/front/front.h"

/* ---- a domain with one worker ---- */

static ad_front front;
static ad_observation observation;
static ad_report_head head;
static ad_report_device devices[3];
static ad_domain_state state; /* of the domain of the server's own user */
static int worker = -1;       /* the worker's end of the probe's connection */
static int answer_of_tell;
static bool ready = true, faked, no_domain;
static bool dies; /* the worker closes its end, with the questions unread */

static ad_domain *get_domain(void) { return (ad_domain *)(void *)&observation; }

ad_domain *__real_ad__domain_next(const ad_front *f, const ad_domain *d);
ad_domain *__wrap_ad__domain_next(const ad_front *f, const ad_domain *d);
ad_domain *__wrap_ad__domain_next(const ad_front *f, const ad_domain *d) {
    if (!faked) return __real_ad__domain_next(f, d);
    return d ? NULL : get_domain();
}

void __real_ad__domain_facts(ad_domain *d, ad_domain_facts *out);
void __wrap_ad__domain_facts(ad_domain *d, ad_domain_facts *out);
void __wrap_ad__domain_facts(ad_domain *d, ad_domain_facts *out) {
    if (!faked) {
        __real_ad__domain_facts(d, out);
        return;
    }
    *out = (ad_domain_facts){
        .name = "uid:0", .state = "", .why = "", .pid = 1, .ready = ready, .observation = &observation};
}

int __real_ad__domain_tell_if_ready(ad_domain *d, const ad_note *note, int fd);
int __wrap_ad__domain_tell_if_ready(ad_domain *d, const ad_note *note, int fd);
int __wrap_ad__domain_tell_if_ready(ad_domain *d, const ad_note *note, int fd) {
    if (!faked) return __real_ad__domain_tell_if_ready(d, note, fd);
    worker = answer_of_tell ? -1 : dup(fd);
    close(fd);
    return answer_of_tell;
}

ad_domain *__real_ad__domain_of(ad_front *f, const ad_entrant *who, ad_domain_state *out, ad_fault *fault);
ad_domain *__wrap_ad__domain_of(ad_front *f, const ad_entrant *who, ad_domain_state *out, ad_fault *fault);
ad_domain *__wrap_ad__domain_of(ad_front *f, const ad_entrant *who, ad_domain_state *out, ad_fault *fault) {
    if (!faked) return __real_ad__domain_of(f, who, out, fault);
    *out = state;
    if (no_domain) return NULL;
    if (state == AD_DOMAIN_FAILED) ad__fault(fault, AD_E_CONNECTION, "it has failed");
    return get_domain();
}

/* ---- one look ---- */

static void note_done(ad_observer *w) { (void)w; }

static void set_up(void) {
    ad_fault fault;
    memset(&front, 0, sizeof front);
    memset(&observation, 0, sizeof observation);
    cr_assert_eq(uv_loop_init(&front.loop), 0);
    cr_assert_eq(ad__principals_load("", "", &front.principals, &fault), 0);
    ad__health_init(&front);
    state = AD_DOMAIN_READY;
    faked = true;
}

static void tear_down(void) {
    ad__health_close(&front);
    uv_run(&front.loop, UV_RUN_DEFAULT);
    ad__principals_free(front.principals);
}

TestSuite(health, .init = set_up, .fini = tear_down);

/* Ask once, and send these bytes as the worker's answer, so many at a time. ends: the worker then closes; else
 * the time for its answer is soon over. */
static void ask_worker(const void *data, size_t size, size_t piece, bool ends) {
    ad_observer w = {.done = note_done};
    front.observability.health.last = 0; /* at once */
    front.config.health_seconds = ends ? 60 : 0.02;
    ad__health(&front, &w);
    for (size_t at = 0; worker >= 0 && at < size; at += piece) {
        const size_t n = size - at < piece ? size - at : piece;
        if (write(worker, (const char *)data + at, n) != (ssize_t)n) break;
        uv_run(&front.loop, UV_RUN_NOWAIT);
    }
    if (ends && worker >= 0) shutdown(worker, SHUT_RDWR);
    if (dies && worker >= 0) close(worker), worker = -1;
    while (w.waiting) uv_run(&front.loop, UV_RUN_ONCE);
    uv_run(&front.loop, UV_RUN_NOWAIT);
    if (worker >= 0) close(worker);
    worker = -1;
    observation.probes_open = 0;
}

static void add_frame(ad_bytes *out, ad_bytes *control, const void *payload, size_t size) {
    uint8_t header[AD_FRAME_HEADER];
    ad__frame_encode(&(ad_frame){.control = (uint32_t)control->size, .payload = size}, header);
    ad__bytes_append(out, header, sizeof header);
    ad__bytes_append(out, control->data, control->size);
    ad__bytes_append(out, payload, size);
    control->size = 0;
}

static void add_reply(ad_bytes *out, double sum, size_t size) {
    ad_bytes control = AD_BYTES_INIT;
    ad__encode_reply(&control, 1, 4, 0, NULL);
    add_frame(out, &control, &sum, size);
    ad__bytes_free(&control);
}

static void check_look(const ad_bytes *b, size_t piece, const char *trouble) {
    ask_worker(b->data, b->size, piece, true);
    cr_expect(observation.probed);
    cr_expect_eq(observation.works, !*trouble, "%s", observation.trouble);
    cr_expect_not_null(strstr(observation.trouble, trouble), "%s: %s", trouble, observation.trouble);
    cr_expect_eq(ad__health_good(&front), !*trouble);
}

#define RIGHT 96.0 /* 64 times 1.5 */

Test(health, a_worker_that_dies_before_it_reads) {
    const ad_bytes nothing = AD_BYTES_INIT;
    dies = true;
    check_look(&nothing, 1, "the worker has closed the connection");
}

Test(health, right_answers_in_pieces) {
    ad_bytes b = AD_BYTES_INIT, control = AD_BYTES_INIT;
    ad__encode_ack(&control, 1);
    add_frame(&b, &control, NULL, 0);
    add_reply(&b, RIGHT, 8);
    for (size_t piece = 1; piece < 30; piece += 4) check_look(&b, piece, "");
    ad__bytes_free(&b);
    ad__encode_fail(&control, 1, 0, AD_E_MEMORY, 1, "new", "full");
    add_frame(&b, &control, NULL, 0);
    check_look(&b, 100, ""); /* a worker without free memory works all the same */
    ad__bytes_free(&b);
    ad__bytes_free(&control);
}

Test(health, wrong_answers) {
    ad_bytes b = AD_BYTES_INIT, control = AD_BYTES_INIT;
    add_reply(&b, RIGHT + 1, 8);
    check_look(&b, 100, "the result is wrong");
    b.size = 0;
    add_reply(&b, RIGHT, 4);
    check_look(&b, 100, "an answer of another kind");
    for (int i = 0; i < 6; i++) {
        static const char *const expected[] = {"it broke",
                                               "the operation failed",
                                               "go away",
                                               "the session was refused",
                                               "an answer of another kind",
                                               "not allowed here"};
        b.size = 0;
        if (i < 2) ad__encode_fail(&control, 1, 0, AD_E_DEVICE, 1, "sum", i ? "" : "it broke");
        else if (i < 4) ad__encode_bye(&control, AD_E_LIMIT, i == 3 ? "" : "go away");
        else if (i == 4) ad__encode_resumed(&control, (const uint8_t *)"0123456789abcdef", 0);
        else ad__encode_sync(&control, 1);
        add_frame(&b, &control, NULL, 0);
        check_look(&b, 100, expected[i]);
    }
    b.size = 0;
    ad__bytes_append(&control, "\xc1", 1);
    add_frame(&b, &control, NULL, 0);
    check_look(&b, 100, "control block");
    b.size = 0;
    ad__bytes_append(&b, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16);
    check_look(&b, 100, "above the limit");
    b.size = 0;
    check_look(&b, 1, "the worker has closed the connection");
    ad__bytes_free(&b);
    ad__bytes_free(&control);
}

Test(health, workers_that_do_not_answer_or_are_not_there) {
    ask_worker(NULL, 0, 1, false);
    cr_expect(!observation.works && strstr(observation.trouble, "no answer"), "%s", observation.trouble);
    observation.probes_open = 4;
    ask_worker(NULL, 0, 1, false);
    cr_expect_not_null(strstr(observation.trouble, "earlier looks are still waiting"), "%s", observation.trouble);
    answer_of_tell = AD_E_CONNECTION;
    ask_worker(NULL, 0, 1, false);
    cr_expect(observation.probed && !observation.works);
    answer_of_tell = 0;
    ready = false;
    ask_worker(NULL, 0, 1, false);
    cr_expect(!observation.probed && !ad__health_good(&front), "nobody was asked");
    state = AD_DOMAIN_STARTING;
    ask_worker(NULL, 0, 1, false);
    cr_expect_not_null(strstr(observation.trouble, "the worker is starting"), "%s", observation.trouble);
    state = AD_DOMAIN_FAILED;
    ask_worker(NULL, 0, 1, false);
    cr_expect_not_null(strstr(observation.trouble, "it has failed"), "%s", observation.trouble);
    no_domain = true; /* as if there were no memory for it */
    ask_worker(NULL, 0, 1, false);
    cr_expect_not_null(strstr(observation.trouble, "it has failed"), "%s", observation.trouble);
    no_domain = false;
    ready = true;
}

Test(health, each_device_in_use_is_looked_at) {
    ad_bytes b = AD_BYTES_INIT;
    head.devices = 3;
    devices[1] = (ad_report_device){.index = 1, .open = 1};
    devices[2] = (ad_report_device){.index = AD_REPORT_DEVICES, .open = 1};
    observation.report = (ad_report){.head = &head, .devices = devices};
    add_reply(&b, RIGHT, 8);
    ask_worker(b.data, b.size, 100, false); /* the other device's answer is missing */
    cr_expect_not(observation.works);
    add_reply(&b, RIGHT, 8);
    check_look(&b, 100, "");
    ad__bytes_free(&b);
}
