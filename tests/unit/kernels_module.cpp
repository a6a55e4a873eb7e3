/* What becomes of a user's source before the host's compiler sees it, and blocks whose threads wait for each other. */
#include <algorithm>
#include <criterion/criterion.h>
#include <string.h>
#include <string>
#include <vector>

#include "kernels/cpu/backend/block.h"
#include "kernels/cpu/backend/module_source.h"

namespace {

std::string rewritten(const std::string &source) { return ad_cpu_module_source(source, {}); }

bool has(const std::string &text, const char *what) { return text.find(what) != std::string::npos; }

bool registers(const std::string &source, const std::string &name) {
    return has(rewritten(source), ("ad_run_entry_" + name + "(").c_str());
}

} // namespace

Test(module, kernels_are_registered_behind_their_bodies) {
    const std::string body = "extern \"C\" __global__ void f(int *x) { if (x) { x[0] = 1; } }";
    const std::string out = rewritten(body + " int after;");
    cr_assert_eq(out.compare(0, body.size(), body), 0);
    cr_assert_eq(out.find("ad_run_entry_f"),
                 out.find("static adrun::registered ") + strlen("static adrun::registered "));
    cr_assert_lt(out.find("ad_run_entry_f"), out.find("int after"));
}

Test(module, only_extern_c_kernels_that_are_there_are_registered) {
    cr_assert(registers("extern \"C\" { __global__ void f() {} }", "f"));
    cr_assert(registers("extern \"C\" __global__ void __launch_bounds__(64, (2)) f(int n) {}", "f"));
    cr_assert(registers("extern \"C\" __global__ void f(); extern \"C\" __global__ void f() {}", "f"));
    cr_assert(registers("#if 0\n{{{\n#if 1\n#endif\n#endif\nextern \"C\" __global__ void f() {}", "f"));
    cr_assert(registers("auto s = R\"x({{{ )\" )x\"; char c = '{'; extern \"C\" __global__ void f() {}", "f"));
    cr_assert(registers("int n = 1'000; // {\nextern \"C\" __global__ void f() {}", "f"));
    cr_assert_not(registers("__global__ void f() {}", "f"));
    cr_assert_not(registers("extern \"C\" __global__ void f();", "f"));
    cr_assert_not(registers("namespace n { extern \"C\" __global__ void f() {} }", "f"));
    cr_assert_not(registers("template <class T> __global__ void f(T *x) {}", "f"));
    cr_assert_not(registers("// extern \"C\" __global__ void f() {}", "f"));
    cr_assert_not(registers("/* \n extern \"C\" __global__ void f() {} */", "f"));
    cr_assert_not(registers("#define K extern \"C\" __global__ void f() \\\n {}", "f"));
    cr_assert_not(registers("const char *s = \"extern \\\"C\\\" __global__ void f() {}\";", "f"));
    cr_assert_not(registers("#if 0\nextern \"C\" __global__ void f() {}\n#else\n#endif", "f"));
}

Test(module, lines_stay) {
    const std::string source =
        "extern \"C\"\n__global__ void f()\n{\n    extern\n __shared__ float s[]\n;\n}\nint last;\n";
    const std::string out = rewritten(source);
    cr_assert_eq(std::count(out.begin(), out.begin() + long(out.find("int last")), '\n'), 7);
    cr_assert(has(out, "float (&s)[] = *reinterpret_cast<float (*)[]>(adrun::dynamic())"));
}

Test(module, dynamic_shared_memory_becomes_a_reference) {
    cr_assert(has(rewritten("extern __shared__ __align__(16) unsigned char raw[];"), "unsigned char (&raw)[]"));
    cr_assert(has(rewritten("extern volatile __shared__ double t[][32];"), "volatile double (&t)[][32]"));
    cr_assert(has(rewritten("extern int x;"), "extern int x;"));
    cr_assert_not(has(rewritten("static __shared__ int s;"), "static __shared__"));
}

Test(module, name_expressions_come_last) {
    const std::string out = ad_cpu_module_source("int x;", {"f<int, 3>", "&n::g", "f<int, 3>", " ", "a\nb", "q\"\\"});
    cr_assert(has(out, "decltype(&f<int, 3>)>::make<&f<int, 3>>(\"f<int, 3>\")"));
    cr_assert(has(out, "make<&n::g>(\"&n::g\")"));
    cr_assert_not(has(out, "a\nb"));
    cr_assert(has(out, "(\"q\\\"\\\\\")"));
    cr_assert_eq(out.find("ad_run_name_0"), out.rfind("ad_run_name_0"));
    cr_assert_not(has(out, "ad_run_name_2"));
}

Test(module, sources_that_break_off) {
    for (const char *source :
         {"", "extern", "extern \"C\"", "extern \"C\" __global__", "extern \"C\" __global__ void f(",
          "extern __shared__", "extern __shared__ int s[", "\"", "'", "R\"x(", "/*", "#", "#if 0\n", "#if 0", "}}}}",
          "__global__", "\\", "#\\", "static"})
        cr_assert(has(rewritten(source), "#line"), "%s", source);
}

/* ---- blocks ---- */

namespace {

/* What a module's code does, without a compiler: threads add up what they see of each other. */
struct data {
    std::vector<unsigned long long> seen;
    int mode;
};

void body(data *d, adrun::block *b) {
    const unsigned me = b->current;
    switch (d->mode) {
    case 0: break;
    case 1: /* the upper half ends early */
        if (me >= b->count / 2) return;
        d->seen[me] = b->wait(b, adrun::WAIT_BLOCK, 0, me % 2, 0);
        break;
    case 2: /* ten barriers and shuffles */
        for (unsigned i = 0; i < 10; i++) {
            d->seen[me] += b->wait(b, adrun::WAIT_SHUFFLE, ~0u, me, int((me % 32 + i) % 32));
            b->wait(b, adrun::WAIT_BLOCK, 0, 0, 0);
        }
        break;
    case 3: /* nobody can go on */ b->wait(b, me == 0 ? adrun::WAIT_BLOCK : adrun::WAIT_WARP, ~0u, 0, 0); break;
    case 4: /* who is there, in two branches */
        d->seen[me] = b->wait(b, adrun::WAIT_ACTIVE, 0, 0, 0);
        if (me % 2 == 0) d->seen[me] += b->wait(b, adrun::WAIT_VOTE, 0x55555555u, 1, 0) & 0xffffffffu;
        break;
    case 5: *reinterpret_cast<volatile int *>(uintptr_t(me + 1) * 16) = 1; break; /* nobody has anything there */
    }
    if (b->current != me) d->seen[me] = ~0ull;
}

void run(void *const *argument, adrun::block *b) {
    while (b->next < b->count) {
        b->current = b->next++;
        b->thread = {b->current, 0, 0};
        body(static_cast<data *>(argument[0]), b);
        b->done[b->current] = 1;
    }
}

int run_block(data *d, unsigned threads, ad_fault *fault) {
    void *argument[] = {d};
    const ad_cpu_grid grid = {"k", run, argument, {1, 1, 1}, {threads, 1, 1}, threads, nullptr};
    d->seen.assign(threads, 0);
    ad_cpu_traps_set();
    int rc = ad_cpu_block_run(&grid, 0, fault);
    ad_cpu_block_rest();
    return rc;
}

} // namespace

Test(module, threads_that_end_early_are_not_waited_for) {
    data d{{}, 1};
    for (unsigned threads : {2u, 64u, 100u, 1024u}) {
        cr_assert_eq(run_block(&d, threads, nullptr), 0);
        const unsigned half = threads / 2;
        for (unsigned i = 0; i < threads; i++)
            cr_assert_eq(d.seen[i], i < half ? (unsigned long long)half << 32 | half / 2 : 0);
    }
}

Test(module, barriers_and_shuffles) {
    data d{{}, 2};
    cr_assert_eq(run_block(&d, 96, nullptr), 0);
    for (unsigned i = 0; i < 96; i++) {
        unsigned long long sum = 0;
        for (unsigned k = 0; k < 10; k++) sum += i / 32 * 32 + (i % 32 + k) % 32;
        cr_assert_eq(d.seen[i], sum);
    }
}

Test(module, a_barrier_that_is_never_complete_is_an_error) {
    data d{{}, 3};
    ad_fault fault = {};
    for (int again = 0; again < 50; again++) {
        cr_assert_eq(run_block(&d, 512, &fault), AD_E_VALUE);
        cr_assert(has(fault.text, "never reach"));
    }
    d.mode = 2; /* nothing of the failure is left */
    cr_assert_eq(run_block(&d, 512, nullptr), 0);
}

Test(module, the_active_lanes_are_those_that_ask_together) {
    data d{{}, 4};
    cr_assert_eq(run_block(&d, 40, nullptr), 0);
    for (unsigned i = 0; i < 40; i++) {
        const unsigned long long there = i < 32 ? 0xffffffffull : 0xffull;
        cr_assert_eq(d.seen[i], there + (i % 2 == 0 ? there & 0x55555555u : 0));
    }
}

Test(module, a_crash_is_an_error) {
#ifdef __SANITIZE_THREAD__
    cr_skip_test("the thread sanitizer does not see that the handler of the signal has been left");
#endif
    data d{{}, 5};
    ad_fault fault = {};
    cr_assert_eq(run_block(&d, 4, &fault), AD_E_DEVICE_LOST);
    cr_assert(has(fault.text, "kernel k: an illegal memory access in block (0, 0, 0), thread (0, 0, 0)"));
}
