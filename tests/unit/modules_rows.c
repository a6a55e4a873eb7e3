/* Rows of modules: what another worker has written is restored if it is whole, and refused where it is not. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/tls/digest.h"
#include "server/worker/io/input.h"
#include "server/worker/io/output.h"
#include "server/worker/modules/inside.h"
#include "tests/unit/worker/end.h"

static const ad_component streams = {.name = "streams", .drop = ad__stream_queues_close};
static const ad_component *const components[] = {&ad__component_turn,
                                                 &ad__component_input,
                                                 &ad__component_output,
                                                 &ad__component_checkpoint,
                                                 &ad__component_buffers,
                                                 &ad__component_modules,
                                                 &streams,
                                                 NULL};

/* The journal of the worker before: a recipe at 1, settings at 2. */
static ad_journal_recipe *recipe;
static ad_journal_settings *settings;

static void *get_left(void *user, ad_at at, uint64_t size) {
    (void)user;
    if (at == 1) return recipe && size <= sizeof *recipe + 64 ? recipe : NULL;
    return at == 2 && size <= 4096 ? settings : NULL;
}

static int take_none(void *user, uint64_t session, uint64_t number) {
    (void)user, (void)session, (void)number;
    return -1;
}

static const ad_left_behind left = {NULL, get_left, take_none};
static const ad_journal_row row = {.kind = AD_JOURNAL_MODULE, .id = 7, .recipe = 1, .settings = 2};

/* Make a recipe of a source without options or names, as the worker before has written it. */
static void write_recipe(const char *source) {
    ad_fault fault = {0};
    recipe = calloc(1, sizeof *recipe + 64);
    recipe->users = 1;
    recipe->source = (uint32_t)strlen(source);
    recipe->bytes = recipe->source + 1;
    strcpy(recipe->text, source);
    const ad_digest_part parts[] = {
        {&recipe->source, offsetof(ad_journal_recipe, text) - offsetof(ad_journal_recipe, source)},
        {recipe->text, recipe->bytes}};
    cr_assert_eq(ad__sha256(parts, 2, recipe->hash, &fault), 0, "%s", fault.text);
}

static void write_setting(uint64_t count, uint64_t bytes, uint32_t name) {
    settings = calloc(1, 4096);
    settings->count = count;
    settings->bytes = bytes;
    ad_journal_setting *first = (ad_journal_setting *)(void *)settings->setting;
    *first = (ad_journal_setting){.shared = 123, .carveout = -1, .size = name};
    memcpy(first->name, "f", 1);
}

static ad_worker_session *start_session(void) {
    ad_worker *w = fake_worker(false, true, components);
    w->hooks.checkpoint = &ad__checkpoint_hooks;
    w->hooks.modules = &ad__modules_hooks;
    return fake_session(w, 1, "alice");
}

static void stop_session(ad_worker_session *s) {
    end_worker(s);
    free(recipe);
    free(settings);
    recipe = NULL;
    settings = NULL;
}

static const ad_loaded *restore_row(ad_worker_session *s) {
    ad_fault fault = {0};
    cr_assert_eq(ad__component_modules.restore(s, &row, &left, &fault), 0, "%s", fault.text);
    cr_assert_not_null(ad__component_modules.place(s, 7));
    cr_assert_null(ad__component_modules.place(s, 8));
    return ad__module_find(s, 7);
}

Test(modules, a_whole_recipe_is_restored) {
    ad_worker_session *s = start_session();
    ad_journal_row again = {.kind = AD_JOURNAL_MODULE};
    write_recipe("extern \"C\" void f() {}");
    write_setting(1, sizeof(ad_journal_setting) + 8, 1);
    const ad_loaded *m = restore_row(s);
    cr_assert_eq(m->loss, AD_MODULE_KEPT);
    cr_assert_str_eq(m->recipe->text, recipe->text);
    cr_assert_neq(m->recipe, recipe, "it was not copied");
    cr_assert_eq(m->kernels->shared, 123);
    cr_assert_eq(ad__component_modules.save(s, 7, &again), 1);
    cr_assert_eq(m->recipe->users, 2);
    cr_assert_neq(again.settings, 0);
    cr_assert_eq(ad__component_modules.save(s, 8, &again), 0);
    stop_session(s);
}

Test(modules, a_damaged_recipe_is_lost) {
    ad_worker_session *s = start_session();
    write_recipe("extern \"C\" void f() {}");
    recipe->text[3] ^= 1;
    cr_assert_eq(restore_row(s)->loss, AD_MODULE_DAMAGED);
    cr_assert_null(ad__module_find(s, 7)->recipe);
    cr_assert_eq(s->modules.text, 0);
    stop_session(s);
}

Test(modules, a_recipe_may_be_missing) {
    ad_worker_session *s = start_session();
    cr_assert_eq(restore_row(s)->loss, AD_MODULE_DAMAGED);
    stop_session(s);
}

Test(modules, settings_stay_within_their_bounds) {
    static const struct {
        uint64_t count, bytes;
        uint32_t name;
    } wrong[] = {{1000, sizeof(ad_journal_setting) + 8, 1},
                 {1, sizeof(ad_journal_setting) + 8, UINT32_MAX},
                 {1, sizeof(ad_journal_setting) - 1, 1},
                 {1, UINT64_MAX, 1},
                 {UINT64_MAX, 0, 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ad_worker_session *s = start_session();
        write_recipe("void f() {}");
        write_setting(wrong[i].count, wrong[i].bytes, wrong[i].name);
        const ad_loaded *m = restore_row(s);
        unsigned kernels = 0;
        for (const ad_named_kernel *k = m->kernels; k; k = k->next) kernels++;
        cr_assert_leq(kernels, 1, "%zu: %u kernels", i, kernels);
        stop_session(s);
    }
}
