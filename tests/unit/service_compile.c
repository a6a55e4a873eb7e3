/* The compile service, with real compilers. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "server/worker/modules/compile/service.h"

static ad_fault fault;

static ad_text make_text(const char *s) { return (ad_text){s, strlen(s)}; }

static char folder[] = "/tmp/arrayd-kernels-XXXXXX";
static ad_config config;
static ad_compiler *service;
static int done_fd = -1;

static void on_done(void *user) { eventfd_write(*(int *)user, 1); }

static void open_service(void) {
    cr_assert_eq(ad__compile_open(&config, on_done, &done_fd, &service, &fault), 0, "%s", fault.text);
}

static void set_up(void) {
    cr_assert_not_null(mkdtemp(folder));
    config = (ad_config){.kernels_cache = folder,
                         .cache_size = 1 << 20,
                         .compile_seconds = 5,
                         .compile_memory = 2ull << 30,
                         .compile_jail = true,
                         .compilers = 2};
    done_fd = eventfd(0, 0);
    open_service();
}

static void tear_down(void) {
    char command[80];
    ad__compile_close(service);
    close(done_fd);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

static ad_compile_counts get_counts(void) {
    ad_compile_counts c;
    ad__compile_counts(service, &c);
    return c;
}

/* Ask until there is an answer. */
static int await_result(const ad_compile_job *job, const ad_binary **out) {
    eventfd_t n;
    int status;
    *out = NULL;
    while (!(status = service->get(service, job, out, &fault))) cr_assert_eq(eventfd_read(done_fd, &n), 0);
    return status;
}

static ad_compile_job job_of(const char *source) {
    return (ad_compile_job){.target = AD_COMPILE_HOST, .source = make_text(source)};
}

TestSuite(compile_service, .init = set_up, .fini = tear_down);

Test(compile_service, answers_are_kept_in_memory_and_on_disk) {
    ad_compile_job job = job_of("extern \"C\" int f() { return 42; }");
    const ad_binary *first, *again;
    cr_assert_eq(service->get(service, &job, &first, &fault), 0);
    cr_expect_eq(get_counts().waiting, 1);
    cr_assert_eq(await_result(&job, &first), 1, "%s", fault.text);
    cr_assert(first->size > 4 && !memcmp(first->data, "\177ELF", 4), "%s", first->log);
    cr_assert_eq(await_result(&job, &again), 1);
    cr_expect_eq(again, first);
    service->release(service, first);
    service->release(service, again);
    ad_compile_counts c = get_counts();
    cr_expect(c.compiled == 1 && !c.failures && c.hits_memory == 1 && !c.hits_disk && !c.waiting);
    ad__compile_close(service);
    open_service();
    cr_assert_eq(await_result(&job, &first), 1, "%s", fault.text);
    cr_expect(first->size > 4 && !memcmp(first->data, "\177ELF", 4));
    service->release(service, first);
    c = get_counts();
    cr_expect(!c.compiled && !c.hits_memory && c.hits_disk == 1, "%d %d", (int)c.compiled, (int)c.hits_disk);
}

Test(compile_service, whatever_differs_is_another_job) {
    static const char *const flag[] = {"-DX=1"}, *const name[] = {"f"};
    static const ad_compile_header header[] = {{"x.h", {"", 0}}};
    ad_compile_job jobs[8];
    const ad_binary *binary[8];
    for (int i = 0; i < 8; i++) jobs[i] = job_of("int f() { return 1; }");
    jobs[1].source = make_text("int f() { return 2; }");
    jobs[2].prelude = make_text("//\n");
    jobs[3].options = jobs[4].own_options = flag;
    jobs[3].noptions = jobs[4].nown_options = 1;
    jobs[5].names = name;
    jobs[5].nnames = 1;
    jobs[6].headers = header;
    jobs[6].nheaders = 1;
    jobs[7].own = true;
    for (int i = 0; i < 8; i++) cr_assert_eq(service->get(service, &jobs[i], &binary[i], &fault), 0, "%d", i);
    for (int i = 0; i < 8; i++) cr_assert_eq(await_result(&jobs[i], &binary[i]), 1, "%s", fault.text);
    for (int i = 0; i < 8; i++) {
        cr_expect_not_null(binary[i]->data, "%d: %s", i, binary[i]->log);
        for (int k = 0; k < i; k++) cr_expect_neq(binary[i], binary[k]);
        service->release(service, binary[i]);
    }
    cr_expect_eq(get_counts().compiled, 8);
}

Test(compile_service, what_does_not_compile_says_why) {
    ad_compile_job job = job_of("int f() {\n  return y;\n}\n");
    static const char *const bad[] = {"--time=x"};
    const ad_binary *binary;
    cr_assert_eq(await_result(&job, &binary), 1, "%s", fault.text);
    cr_expect_null(binary->data);
    cr_expect_not_null(strstr(binary->log, "kernel.cu:2:"), "%s", binary->log);
    service->release(service, binary);
    cr_expect(get_counts().failures == 1);
    job.options = bad;
    job.noptions = 1;
    cr_expect_eq(service->get(service, &job, &binary, &fault), AD_E_DENIED);
    cr_expect_not_null(strstr(fault.text, "--time=x"), "%s", fault.text);
    cr_expect_eq(get_counts().waiting, 0);
}

/* A source on which a compiler is busy until it is stopped. */
#define TEN(a) a a a a a a a a a a
static const char endless[] =
    "#define A " TEN("+1") "\n#define B " TEN("A ") "\n#define C " TEN("B ") "\n#define D " TEN(
        "C ") "\n#define E " TEN("D ") "\n#define F " TEN("E ") "\n#define G " TEN("F ") "\nint x = G " TEN("G ") ";\n";

Test(compile_service, who_takes_long_does_not_keep_others_waiting) {
    static char numbered[3][sizeof endless + 16], quick[4][64];
    const ad_binary *binary;
    ad_compile_job job;
    for (int i = 0; i < 3; i++) {
        snprintf(numbered[i], sizeof numbered[i], "//%d\n%s", i, endless);
        job = job_of(numbered[i]);
        cr_assert_eq(service->get(service, &job, &binary, &fault), 0);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(quick[i], sizeof quick[i], "int f() { return %d; }", i);
        job = job_of(quick[i]);
        cr_assert_eq(await_result(&job, &binary), 1, "%s", fault.text);
        cr_expect_not_null(binary->data);
        service->release(service, binary);
    }
    cr_expect_geq(get_counts().waiting, 1); /* there are still some of the others */
}

Test(compile_service, users_go_first) {
    static char source[16][64];
    const ad_binary *binary;
    ad_compile_job job;
    for (int i = 0; i < 16; i++) {
        snprintf(source[i], sizeof source[i], "int f() { return %d; }", i);
        job = job_of(source[i]);
        job.own = i < 15;
        cr_assert_eq(service->get(service, &job, &binary, &fault), 0);
    }
    cr_assert_eq(await_result(&job, &binary), 1, "%s", fault.text); /* the user's, which came last */
    service->release(service, binary);
    cr_expect_geq(get_counts().waiting, 3); /* with two compilers it would be one, had it come in turn */
    job = job_of(source[0]);
    job.own = true;
    cr_assert_eq(await_result(&job, &binary), 1, "%s", fault.text);
    service->release(service, binary);
}

/* A backend's job behind thirty of a user's: it is started before they are over. */
Test(compile_service, no_flood_of_users_keeps_a_backend_waiting) {
    enum { USERS = 30 };
    static char source[USERS][64];
    const ad_binary *binary;
    ad_compile_job own = job_of("int own() { return 0; }"), job;
    own.own = true;
    for (int i = 0; i < USERS; i++) {
        snprintf(source[i], sizeof source[i], "int f() { return %d; }", i);
        job = job_of(source[i]);
        cr_assert_eq(service->get(service, &job, &binary, &fault), 0);
    }
    cr_assert_eq(service->get(service, &own, &binary, &fault), 0);
    cr_assert_eq(await_result(&own, &binary), 1, "%s", fault.text);
    service->release(service, binary);
    cr_expect_geq(get_counts().waiting, 1); /* had it been the last, none would be */
}

/* One of the backends' jobs, asked for again and again, behind fifteen that were asked for once. */
Test(compile_service, what_is_asked_for_most_goes_first) {
    static char source[16][64];
    const ad_binary *binary;
    ad_compile_job job;
    for (int i = 0; i < 16; i++) {
        snprintf(source[i], sizeof source[i], "int f() { return %d; }", i);
        job = job_of(source[i]);
        job.own = true;
        cr_assert_eq(service->get(service, &job, &binary, &fault), 0);
    }
    cr_assert_eq(service->get(service, &job, &binary, &fault), 0); /* again: once more than the others */
    cr_assert_eq(await_result(&job, &binary), 1, "%s", fault.text);
    service->release(service, binary);
    cr_expect_geq(get_counts().waiting, 3); /* in turn it would have been the last */
    for (int i = 0; i < 15; i++) {
        job = job_of(source[i]);
        job.own = true;
        cr_assert_eq(await_result(&job, &binary), 1, "%s", fault.text);
        service->release(service, binary);
    }
    cr_expect_eq(get_counts().waiting, 0);
}

Test(compile_service, one_job_is_compiled_once) {
    ad_compile_job job = job_of("int f() { return 7; }");
    const ad_binary *binary[64];
    for (int i = 0; i < 64; i++) cr_assert_eq(service->get(service, &job, &binary[i], &fault), 0);
    cr_expect_eq(get_counts().waiting, 1);
    for (int i = 0; i < 64; i++) cr_assert_eq(await_result(&job, &binary[i]), 1);
    for (int i = 0; i < 64; i++) service->release(service, binary[i]);
    cr_expect_eq(get_counts().compiled, 1);
}
