/* Answers about arrays of other servers, which come when nobody waits for them any more, or is about to give up. */
#include <criterion/criterion.h>

#include "server/worker/handlers.h"
#include "server/worker/sharing/pull.h"
#include "server/worker/sharing/sharing.h"
#include "tests/unit/worker/ops.h"

static const ad_component *const components[] = {&ad__component_turn, &ad__component_checkpoint, &ad__component_buffers,
                                                 &ad__component_sharing, NULL};

static ad_worker_session *s;
static ad_session_pull *pull;

static void set_up(void) {
    ad_worker *w = fake_worker(false, false, components);
    w->hooks.checkpoint = &ad__checkpoint_hooks;
    w->hooks.sharing = &ad__sharing_hooks;
    cr_assert_eq(ad__sharing_open(w), 0);
    s = fake_session(w, 1, "alice");
    pull = &s->sharing.pull;
    atomic_store(&pull->place, 7);
}

TestSuite(pull, .init = set_up);

/* Let arrayd answer the question of a place: there is no such array. */
static unsigned answer_question(uint64_t place) {
    ad_note note = {.kind = AD_NOTE_PULLED, .id = 1, .size = place, .process = (uint64_t)-AD_E_NAME, .text = "none"};
    ad__pull_take_answer(s, &note);
    return atomic_load(&pull->state);
}

Test(pull, an_answer_that_nobody_waits_for) {
    cr_expect_eq(answer_question(7), AD_PULL_NONE);
    atomic_store(&pull->state, AD_PULL_ASKED);
    cr_expect_eq(answer_question(6), AD_PULL_ASKED, "of an earlier question");
    cr_expect_eq(answer_question(7), AD_PULL_ANSWERED);
    cr_expect_eq(answer_question(7), AD_PULL_ANSWERED, "it comes twice");
    cr_expect_eq(pull->code, AD_E_NAME);
    cr_expect_str_eq(pull->why, "none");
}

Test(pull, an_answer_before_the_client_cancels) {
    ad_message m = {0};
    ad_fault fault = {0};
    atomic_store(&pull->state, AD_PULL_ASKED);
    answer_question(7);
    s->messages.place = 7;
    atomic_store(&s->turns.cancelled_before, 8);
    cr_expect_eq(ad__handle_pull(s, &m, &fault), AD_E_NAME);
    cr_expect_str_eq(fault.text, "none");
    cr_expect_eq(atomic_load(&pull->state), AD_PULL_NONE);
}
