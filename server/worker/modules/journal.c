/* Rows of users' modules in the journal: what they are made from, and the settings of their kernels. */
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"
#include "server/worker/modules/inside.h"

#define WORD_BYTES 8 /* bytes; settings begin at multiples of it */

/* ---- recipes ---- */

static int hash_recipe(const ad_journal_recipe *r, uint8_t out[AD_SHA256_SIZE], ad_fault *fault) {
    const ad_digest_part parts[] = {
        {&r->source, offsetof(ad_journal_recipe, text) - offsetof(ad_journal_recipe, source)}, {r->text, r->bytes}};
    return ad__sha256(parts, 2, out, fault);
}

static char *append_text(char *to, const char *text, size_t size) {
    if (size) memcpy(to, text, size);
    to[size] = 0;
    return to + size + 1;
}

/* Allocate a recipe with so many bytes of text, within the session's limit. NULL with a fault. */
static ad_journal_recipe *reserve_recipe(ad_worker_session *s, uint64_t bytes, ad_fault *fault) {
    if (bytes > UINT32_MAX || s->modules.text + bytes > AD_MODULES_TEXT) {
        ad__fault(fault, AD_E_LIMIT, "the sources of the session's modules have together more than %llu MiB",
                  AD_MODULES_TEXT >> 20);
        return NULL;
    }
    ad_journal_recipe *r = ad__journal_alloc(s->checkpoint.journal, sizeof *r + bytes);
    if (!r) {
        ad__fault(fault, AD_E_MEMORY, "out of host memory");
        return NULL;
    }
    s->modules.text += bytes;
    return r;
}

int ad__recipe_new(ad_worker_session *s, const ad_building *b, ad_text source, const ad_string *options,
                   size_t noptions, ad_journal_recipe **out, ad_fault *fault) {
    uint64_t bytes = source.size + 1;
    if (!ad__session_is_recoverable(s)) return 0;
    for (size_t i = 0; i < noptions; i++) bytes += options[i].size + 1;
    for (size_t i = 0; i < b->nnames; i++) bytes += strlen(b->names[i]) + 1;
    ad_journal_recipe *r = *out = reserve_recipe(s, bytes, fault);
    if (!r) return fault->code;
    *r = (ad_journal_recipe){.users = 1,
                             .source = (uint32_t)source.size,
                             .bytes = (uint32_t)bytes,
                             .noptions = (uint32_t)noptions,
                             .nnames = (uint32_t)b->nnames};
    char *to = append_text(r->text, source.data, source.size);
    for (size_t i = 0; i < noptions; i++) to = append_text(to, options[i].data, options[i].size);
    for (size_t i = 0; i < b->nnames; i++) to = append_text(to, b->names[i], strlen(b->names[i]));
    return hash_recipe(r, r->hash, fault);
}

void ad__recipe_words(const ad_journal_recipe *r, const char **word) {
    const char *at = r->text + r->source + 1;
    for (uint32_t i = 0; i < r->noptions + r->nnames; i++) {
        word[i] = at;
        at += strlen(at) + 1;
    }
}

/* True if the recipe is as it was written, with all its texts. */
static bool is_whole(const ad_journal_recipe *r) {
    uint8_t hash[AD_SHA256_SIZE];
    uint64_t ends = 0;
    if (hash_recipe(r, hash, NULL) || memcmp(hash, r->hash, sizeof hash) || r->source >= r->bytes || r->text[r->source])
        return false;
    for (uint32_t i = r->source; i < r->bytes; i++) ends += !r->text[i];
    return !r->text[r->bytes - 1] && ends == 1 + (uint64_t)r->noptions + r->nnames;
}

/* ---- settings ---- */

static bool is_set(const ad_named_kernel *k) { return k->shared >= 0 || k->carveout >= 0 || k->cooperative; }

static uint64_t setting_bytes(uint64_t name) {
    return sizeof(ad_journal_setting) + (name + WORD_BYTES - 1) / WORD_BYTES * WORD_BYTES;
}

/* Write the settings of all kernels into the journal. NULL: no memory, or (*any false) no kernel has settings. */
static ad_journal_settings *write_settings(ad_journal *l, const ad_loaded *m, bool *any) {
    uint64_t bytes = 0, count = 0;
    for (const ad_named_kernel *k = m->kernels; k; k = k->next) {
        if (!is_set(k)) continue;
        bytes += setting_bytes(k->size);
        count++;
    }
    *any = count != 0;
    ad_journal_settings *all = count ? ad__journal_alloc(l, sizeof *all + bytes) : NULL;
    if (!all) return NULL;
    *all = (ad_journal_settings){count, bytes};
    char *to = (char *)all->setting;
    for (const ad_named_kernel *k = m->kernels; k; k = k->next) {
        if (!is_set(k)) continue;
        ad_journal_setting *setting = (ad_journal_setting *)(void *)to;
        *setting = (ad_journal_setting){k->shared, k->carveout, k->cooperative, (uint32_t)k->size};
        memcpy(setting->name, k->name, k->size);
        to += setting_bytes(k->size);
    }
    return all;
}

/* Read settings that another worker has written, within their bounds. AD_E_MEMORY. */
static int read_settings(ad_loaded *m, const ad_journal_settings *all) {
    const char *at = (const char *)all->setting, *end = at + all->bytes;
    for (uint64_t i = 0; i < all->count && (size_t)(end - at) >= sizeof(ad_journal_setting); i++) {
        const ad_journal_setting *setting = (const ad_journal_setting *)(const void *)at;
        const uint64_t bytes = setting_bytes(setting->size);
        if (bytes > (uint64_t)(end - at)) break;
        ad_named_kernel *k = ad__module_kernel(m, setting->name, setting->size);
        if (!k) return AD_E_MEMORY;
        k->shared = setting->shared;
        k->carveout = setting->carveout;
        k->cooperative = setting->cooperative != 0;
        at += bytes;
    }
    return 0;
}

/* ---- rows ---- */

static ad_module_loss find_loss(const ad_loaded *m) {
    if (m->loss) return m->loss;
    return m->touched ? AD_MODULE_VARIABLES : m->recipe ? AD_MODULE_KEPT : AD_MODULE_DAMAGED;
}

static int save_module(ad_worker_session *s, uint64_t id, ad_journal_row *row) {
    ad_journal *l = s->checkpoint.journal;
    ad_loaded *m = ad__module_find(s, id);
    bool any = false;
    if (!m) return 0;
    ad_journal_settings *settings = write_settings(l, m, &any);
    if (any && !settings) return AD_E_MEMORY;
    row->device = (uint16_t)m->gpu->index;
    row->lost = (uint8_t)find_loss(m);
    row->settings = ad__journal_at(l, settings);
    row->recipe = ad__journal_at(l, m->recipe);
    if (m->recipe) m->recipe->users++;
    return 1;
}

static uint32_t *find_module_place(ad_worker_session *s, uint64_t id) {
    ad_loaded *m = ad__module_find(s, id);
    return m ? &m->place : NULL;
}

/* Copy a recipe that another worker has written. NULL: it is missing or damaged, or with a fault: no memory. */
static ad_journal_recipe *copy_recipe(ad_worker_session *s, const ad_journal_recipe *from, ad_fault *fault) {
    ad_journal_recipe *r = from ? reserve_recipe(s, from->bytes, fault) : NULL;
    if (!r) return NULL;
    memcpy(r, from, sizeof *r + from->bytes);
    r->users = 1;
    if (is_whole(r)) return r;
    s->modules.text -= r->bytes;
    ad__journal_free(s->checkpoint.journal, r);
    return NULL;
}

/* Get the recipe that another worker has written. NULL: it is missing. */
static const ad_journal_recipe *get_recipe(const ad_left_behind *left, const ad_journal_row *row) {
    const ad_journal_recipe *r = left->get(left->user, row->recipe, sizeof *r);
    return r ? left->get(left->user, row->recipe, sizeof *r + r->bytes) : NULL;
}

static const ad_journal_settings *get_settings(const ad_left_behind *left, const ad_journal_row *row) {
    const ad_journal_settings *all = left->get(left->user, row->settings, sizeof *all);
    if (!all || all->bytes > UINT64_MAX - sizeof *all) return NULL;
    return left->get(left->user, row->settings, sizeof *all + all->bytes);
}

/* Restore a module. It is built again when it is used. */
static int restore_module(ad_worker_session *s, const ad_journal_row *row, const ad_left_behind *left,
                          ad_fault *fault) {
    const ad_journal_recipe *recipe = get_recipe(left, row);
    const ad_journal_settings *settings = get_settings(left, row);
    const ad_stream_queue *queue = ad__stream_queue_find(s, row->device, fault);
    ad_loaded *m = queue ? ad__os.calloc(1, sizeof *m) : NULL;
    if (!m) return queue ? ad__fault(fault, AD_E_MEMORY, "out of host memory") : fault->code;
    m->id = row->id;
    m->gpu = queue->gpu;
    m->loss = (ad_module_loss)row->lost;
    if (!m->loss && !(m->recipe = copy_recipe(s, recipe, fault))) m->loss = AD_MODULE_DAMAGED;
    if (settings && read_settings(m, settings)) {
        ad__module_free(s, m);
        return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    }
    ad__module_add(s, m);
    ad__checkpoint_mark_row(s, AD_JOURNAL_MODULE, m->id);
    return 0;
}

const ad_component ad__component_modules = {.name = "modules",
                                            .drop = ad__modules_close,
                                            .kind = AD_JOURNAL_MODULE,
                                            .save = save_module,
                                            .place = find_module_place,
                                            .restore = restore_module};
