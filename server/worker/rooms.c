/* How the rooms of the worker are put together: what a session has, and what lower rooms call of upper ones. */
#include "server/worker/io/trace.h"
#include "server/worker/migrate/migration.h"
#include "server/worker/report.h"
#include "server/worker/session/session.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/spill/spill.h"

/* A session is opened, dropped and closed in this order. Streams come after all that is freed in their order. */
static const ad_component *const components[] = {
    &ad__component_turn,       &ad__component_socket,   &ad__component_input,  &ad__component_output,
    &ad__component_comeback,   &ad__component_reading,  &ad__component_past,   &ad__component_fusion,
    &ad__component_checkpoint, &ad__component_buffers,  &ad__component_spill,  &ad__component_sharing,
    &ad__component_modules,    &ad__component_checks,   &ad__component_events, &ad__component_windows,
    &ad__component_streams,    &ad__component_messages, &ad__component_trace,  NULL,
};

static const ad_engine_hooks engine_hooks = {.turn = ad__session_turn,
                                             .drop = ad__session_drop,
                                             .report = ad__report_send,
                                             .due = ad__sharing_due,
                                             .sweep = ad__sharing_sweep};

void ad__worker_connect(ad_worker *w) {
    w->components = components;
    w->hooks = (ad_hooks){.checkpoint = &ad__checkpoint_hooks,
                          .modules = &ad__modules_hooks,
                          .sharing = &ad__sharing_hooks,
                          .engine = &engine_hooks,
                          .migration = &ad__migration_hooks};
}
