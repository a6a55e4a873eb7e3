/* Compiling at run time: the pipes' format, and the options that are allowed. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/compile/frame.h"
#include "server/compile/options.h"

static ad_fault fault;

static ad_text make_text(const char *s) { return (ad_text){s, strlen(s)}; }

/* ---- the format ---- */

static const char *const options[] = {"-DX=1", "--std=c++17"}, *const own_options[] = {"-fno-math-errno"};
static const char *const names[] = {"f<int>", "g"};
static const ad_compile_header headers[] = {{"a/b.h", {"#define B\n", 10}}, {"c.h", {"", 0}}};

static ad_compile_request make_example(void) {
    return (ad_compile_request){.job = {.target = AD_COMPILE_HOST,
                                        .arch = "x86-64-v3",
                                        .prelude = make_text("#define P\n"),
                                        .source = make_text("int f();"),
                                        .options = options,
                                        .noptions = 2,
                                        .own_options = own_options,
                                        .nown_options = 1,
                                        .names = names,
                                        .nnames = 2,
                                        .headers = headers,
                                        .nheaders = 2,
                                        .own = true},
                                .seconds = 7,
                                .memory = 5ull << 32,
                                .open = true,
                                .nvrtc = "/lib/x"};
}

Test(compile, request_goes_there_and_back) {
    ad_compile_request r = make_example(), got;
    ad_bytes b = AD_BYTES_INIT;
    void *lists;
    cr_assert_eq(ad__compile_put_request(&b, &r), 0);
    cr_assert_eq(ad__compile_get_request(b.data, b.size, &got, &lists, &fault), 0, "%s", fault.text);
    cr_expect_eq(got.job.target, AD_COMPILE_HOST);
    cr_expect_str_eq(got.job.arch, "x86-64-v3");
    cr_expect(got.job.prelude.size == 10 && !memcmp(got.job.prelude.data, "#define P\n", 10));
    cr_expect_str_eq(got.job.source.data, "int f();");
    cr_assert(got.job.noptions == 2 && got.job.nown_options == 1 && got.job.nnames == 2 && got.job.nheaders == 2);
    cr_expect_str_eq(got.job.options[1], "--std=c++17");
    cr_expect_str_eq(got.job.own_options[0], "-fno-math-errno");
    cr_expect_str_eq(got.job.names[0], "f<int>");
    cr_expect_str_eq(got.job.headers[0].name, "a/b.h");
    cr_expect_eq(got.job.headers[0].text.size, 10);
    cr_expect(got.job.own && got.open && got.seconds == 7 && got.memory == 5ull << 32);
    cr_expect_str_eq(got.nvrtc, "/lib/x");
    free(lists);
    ad__bytes_free(&b);
}

Test(compile, result_goes_there_and_back) {
    static const uint8_t binary[] = {0, 1, 2};
    ad_compile_result r = {.binary = {binary, 3, names, 2, "a warning"}}, got;
    ad_bytes b = AD_BYTES_INIT;
    void *lists;
    cr_assert_eq(ad__compile_put_result(&b, &r), 0);
    cr_assert_eq(ad__compile_get_result(b.data, b.size, &got, &lists, &fault), 0, "%s", fault.text);
    cr_expect(got.kind == AD_COMPILE_MADE && got.binary.size == 3 && !memcmp(got.binary.data, binary, 3));
    cr_expect_str_eq(got.binary.log, "a warning");
    cr_assert_eq(got.binary.nlowered, 2);
    cr_expect_str_eq(got.binary.lowered[1], "g");
    free(lists);
    ad__bytes_free(&b);
}

/* A copy that ends where its memory does, so that a sanitizer sees what reads on. */
static void read_both(const uint8_t *data, size_t size) {
    ad_compile_request request;
    ad_compile_result result;
    uint8_t *exact = malloc(size ? size : 1);
    void *lists;
    memcpy(exact, data, size);
    ad__compile_get_request(exact, size, &request, &lists, &fault);
    free(lists);
    ad__compile_get_result(exact, size, &result, &lists, &fault);
    free(lists);
    free(exact);
}

Test(compile, damaged_frames_are_refused_without_harm) {
    ad_compile_request r = make_example(), got;
    ad_bytes b = AD_BYTES_INIT;
    unsigned seed = 5;
    void *lists;
    cr_assert_eq(ad__compile_put_request(&b, &r), 0);
    for (size_t size = 0; size < b.size; size++) {
        cr_expect_lt(ad__compile_get_request(b.data, size, &got, &lists, &fault), 0, "cut at %zu", size);
        free(lists);
        read_both(b.data, size);
    }
    for (int i = 0; i < 20000; i++) {
        size_t at = (size_t)rand_r(&seed) % b.size;
        uint8_t before = b.data[at];
        b.data[at] = (uint8_t)rand_r(&seed);
        read_both(b.data, b.size);
        if (i % 3) b.data[at] = before;
    }
    ad__bytes_free(&b);
}

/* ---- options ---- */

static int check_options(ad_compile_target target, size_t n, const char *const *list) {
    ad_compile_job job = {.target = target,
                          .arch = target ? "x86-64-v3" : "sm_90",
                          .source = make_text(""),
                          .options = list,
                          .noptions = n};
    memset(&fault, 0, sizeof fault);
    return ad__compile_check(&job, &fault);
}

Test(compile, options_that_are_allowed) {
    static const char *const good[] = {"-DA",
                                       "-DA=1",
                                       "-DA=\"x y\"",
                                       "-DF(x)=x",
                                       "-D",
                                       "A",
                                       "-UA",
                                       "--define-macro=B=2",
                                       "--undefine-macro",
                                       "B",
                                       "-std=c++11",
                                       "--std=c++20",
                                       "-w",
                                       "-use_fast_math",
                                       "--use_fast_math",
                                       "-fmad=false",
                                       "--fmad=true",
                                       "-ftz=true",
                                       "-prec-div=false",
                                       "-prec-sqrt=false",
                                       "-maxrregcount=32",
                                       "--maxrregcount",
                                       "32",
                                       "-lineinfo",
                                       "-default-device",
                                       "--device-as-default-execution-space",
                                       "-G",
                                       "--device-debug",
                                       "--ptxas-options=-v",
                                       "-Xptxas",
                                       "-O3,-dlcm=ca",
                                       "--diag-suppress=177,550"};
    cr_expect_eq(check_options(AD_COMPILE_CUDA, sizeof good / sizeof *good, good), 0, "%s", fault.text);
    cr_expect_eq(check_options(AD_COMPILE_HOST, sizeof good / sizeof *good, good), 0, "%s", fault.text);
}

Test(compile, options_that_are_not) {
    static const char *const bad[] = {"--time=/tmp/x",
                                      "--create-pch=/tmp/x",
                                      "-pch",
                                      "--use-pch=x",
                                      "--pch-dir=/tmp",
                                      "-include",
                                      "--pre-include=/etc/passwd",
                                      "@file",
                                      "-I/",
                                      "-I",
                                      "--include-path=/etc",
                                      "-o/tmp/x",
                                      "-fplugin=/tmp/x.so",
                                      "-wrapper",
                                      "-B/tmp",
                                      "-specs=x",
                                      "-Xptxas",
                                      "--ptxas-options=-o,/tmp/x",
                                      "--ptxas-options=-v,",
                                      "--ptxas-options=",
                                      "-Xptxas=-v -o/tmp/x",
                                      "-arch=sm_80",
                                      "--gpu-architecture=sm_80",
                                      "-L/",
                                      "-dlto",
                                      "-rdc=true",
                                      "-D",
                                      "-DA\nB",
                                      "-D1",
                                      "-D@x",
                                      "-std=gnu++17",
                                      "-std=c++98",
                                      "-fmad=maybe",
                                      "-fmad",
                                      "-maxrregcount=x",
                                      "-w=1",
                                      "kernel.cu",
                                      "-",
                                      "--",
                                      "-fsyntax-only",
                                      "-save-temps",
                                      "-ftime-report=/tmp/x",
                                      "--fdevice-time-trace=/tmp/x",
                                      "-optix-ir",
                                      "-minimal;",
                                      "-Uf(x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (int target = 0; target < 2; target++) {
            int status = check_options((ad_compile_target)target, 1, &bad[i]);
            cr_expect(status == AD_E_DENIED || status == AD_E_VALUE, "%s: %d", bad[i], status);
            cr_expect_not_null(strstr(fault.text, bad[i]), "%s: %s", bad[i], fault.text);
        }
    }
}

static void expect_options(ad_compile_target target, size_t n, const char *const *list, size_t nexpected,
                           const char *const *expected) {
    ad_compile_job job = {.target = target, .options = list, .noptions = n};
    ad_compile_words words;
    cr_assert_eq(ad__compile_words(&job, &words, &fault), 0, "%s", fault.text);
    cr_assert_eq(words.n, nexpected, "%zu", words.n);
    for (size_t i = 0; i < nexpected; i++) cr_expect_str_eq(words.words[i], expected[i]);
    ad__compile_words_free(&words);
}

Test(compile, options_are_translated) {
    static const char *const given[] = {"-D",  "A=1",       "--define-macro=B", "-w",      "-fmad=false", "-std=c++14",
                                        "-UC", "-lineinfo", "-default-device",  "-Xptxas", "-v"};
    static const char *const cuda[] = {"-DA=1",
                                       "-DB",
                                       "--disable-warnings",
                                       "--fmad=false",
                                       "--std=c++14",
                                       "-UC",
                                       "--generate-line-info",
                                       "--device-as-default-execution-space",
                                       "--ptxas-options=-v"};
    static const char *const host[] = {"-DA=1", "-DB", "-w", "-std=c++17", "-UC"};
    expect_options(AD_COMPILE_CUDA, 11, given, 9, cuda);
    expect_options(AD_COMPILE_HOST, 11, given, 5, host);
}

Test(compile, sizes_are_bounded) {
    static char source[AD_COMPILE_SOURCE + 1], name[AD_COMPILE_WORD + 2];
    static const char *list[AD_COMPILE_NAMES + 1];
    ad_compile_job job = {.target = AD_COMPILE_HOST, .source = {source, AD_COMPILE_SOURCE}, .names = list};
    memset(source, ' ', sizeof source);
    memset(name, 'n', sizeof name - 1);
    for (size_t i = 0; i <= AD_COMPILE_NAMES; i++) list[i] = "f";
    job.nnames = AD_COMPILE_NAMES;
    cr_expect_eq(ad__compile_check(&job, &fault), 0, "%s", fault.text);
    job.nnames++;
    cr_expect_eq(ad__compile_check(&job, &fault), AD_E_LIMIT);
    job.nnames = 1;
    list[0] = name;
    cr_expect_eq(ad__compile_check(&job, &fault), AD_E_LIMIT);
    job.nnames = 0;
    job.source.size++;
    cr_expect_eq(ad__compile_check(&job, &fault), AD_E_LIMIT);
    job.source.size = 3;
    source[1] = 0;
    cr_expect_eq(ad__compile_check(&job, &fault), AD_E_VALUE);
    job.source.size = 0;
    job.arch = "native;x";
    cr_expect_eq(ad__compile_check(&job, &fault), AD_E_VALUE);
    static const char *const paths[] = {"/etc/x", "../x", "a/../../x", "", "a//b", "a b", "a/"};
    job.arch = "";
    job.nheaders = 1;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        job.headers = &(ad_compile_header){paths[i], {"", 0}};
        cr_expect_eq(ad__compile_check(&job, &fault), AD_E_VALUE, "%s", paths[i]);
    }
}
