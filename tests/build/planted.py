"""Faults planted into the product, for the simulator to find.

plant(folder, mutant) makes a folder that the simulator takes as BUILD: one source is changed, compiled and linked in place
of the real one."""
import pathlib
import re
import subprocess

from commands import BUILD, TOP, run

CHECKPOINT = "server/worker/checkpoint"
KILLS = ["fatal=0", "spill=0", "upgrades=0", "store_kills=0", "no_memory=0", "no_descriptor=0", "splits=0", "delays=0", "most_kills=5", "worker_kills=1500"]
# A kill at stores of a script in which two sessions use a capability at the same moment.
USED_TOGETHER = ["--sweep", "--every", "2", "--seed", "4",
                 *(part for text in ("script=2", "late_events=300000", "switches=200000", "late=1") for part in ("--set", text))]
# Kills while much is under way. One seed in 1,500 asks for an event in the moment between.
EVENTS_AGAIN = ["--seeds", "1", "--from", "101152",
                *(part for text in (*KILLS, "late=1", "events=1", "commons=0", "bursts=0", "indices=0", "operations=300", "most_kills=7", "worker_kills=2000",
                                    "switches=200000", "late_events=300000") for part in ("--set", text))]
# name: program, source, what stands there, what is put there, settings of the simulator, or its options
MUTANTS = {
    "a change in place is not announced": (
        "arrayd-worker", f"{CHECKPOINT}/before_change.c",
        "    ad__journal_store(&ad__checkpoint_table(v)->row[b->place].writing, number);\n", "", ["late=1"]),
    "a checkpoint does not wait for the device": (
        "arrayd-worker", f"{CHECKPOINT}/states.c",
        "!v->pending_checkpoint.open || !(passed || is_reached(s)) || ", "!v->pending_checkpoint.open || !(passed || is_reached(s) || true) || ", ["late=1"]),
    "received bytes are not counted in their block": (
        "arrayd-worker", "server/worker/io/input.c", "    ad__journal_store(&b->own.size, b->used);\n", "", ["late=0"]),
    "the journal of a second death is taken": (
        "arrayd", "server/front/workers/worker_files.c", "    if (k->old >= 0) {\n        replace_descriptor(&k->journal, -1);",
        "    if (k->old >= 0 && k->journal < 0) {\n        replace_descriptor(&k->journal, -1);", ["late=0"]),
    "a slab is not kept": (
        "arrayd", "server/front/workers/slabs.c", "    for (size_t i = 0; i < s->count; i++) {\n        ad_note note",
        "    for (size_t i = 1; i < s->count; i++) {\n        ad_note note", ["late=0"]),
    "answers go before their checkpoint": (
        "arrayd-worker", f"{CHECKPOINT}/states.c", "    if (s->fusion.count) return;\n    unsigned slot",
        "    if (s->fusion.count) return;\n    ad__output_settle(&s->output, atomic_load(&s->output.appended));\n"
        "    if (s->progress.requests % 2) return;\n    unsigned slot", ["late=0"]),
    "answers go of which the journal does not know": (
        "arrayd-worker", f"{CHECKPOINT}/states.c",
        "    ad__journal_store(&v->at->current, slot);\n    ad__output_settle(&s->output, state->appended);\n}",
        "    ad__output_settle(&s->output, state->appended);\n}", ["late=1"]),
    "memory of the committed checkpoint is used again at once": (
        "arrayd-worker", f"{CHECKPOINT}/before_change.c",
        "        !ad__checkpoint_defer_free(s, b->home->stream_arena, &b->block, b)) {",
        "        (ad__memory_give(b->home->stream_arena, &b->block), false)) {",
        ["late=0", "store_kills=3000", "commons=0", "events=0"]),
    "the client forgets some of what it sent": (
        "client", "client-c/net/stream.c", "    ad__save_unacked(s, payload, size);\n",
        "    if (s->encoded.ops % 16) ad__save_unacked(s, payload, size);\n", ["late=0", "drops=1000000"]),
    "free messages go behind the fork message": (
        "client", "client-c/resume/inherit.c", "    s->frees.held = true;\n", "    s->frees.held = false;\n",
        ["forks=1", "quota=0", "operations=300"]),
    "what was seen to be complete is under way again": (
        "arrayd-worker", "server/worker/session/session_run.c", "    if (!s->checkpoint.resumed.behind) return false;\n", "    if (s) return false;\n",
        EVENTS_AGAIN),
    "a use of a capability is written down over another's": (
        "arrayd-worker", "server/worker/sharing/capabilities.c", "if (c->uses && !ad__holder_await_use(s, &c->holder))", "if (false)",
        USED_TOGETHER),
    "what all write is lost to its writer alone": (
        "arrayd-worker", "server/worker/recover/memory.c", "        if (c && was_changing(&row, state)) c->changing = true;\n", "",
        ["commons=1"]),
    "a name is found in the worker that its user has left": (
        "arrayd-worker", "server/worker/sharing/names.c", "if (*at && !(*at)->moving && may_attach(s, *at))", "if (*at && may_attach(s, *at))",
        ["commons=1", "bursts=0", "indices=0", "moves=1", "worker_kills=0", "upgrades=3", "drops=0", "client_kills=0", "quota=0", "forks=0"]),
    "a failure that nobody was told of ends with its worker": (
        "arrayd-worker", "server/worker/recover/recover.c",
        "    s->progress.pending = ad__recovery_poison(s->worker->before.left, state->pending);\n", "",
        ["late=0", "indices=1", "commons=0", "operations=300"]),
    "a session that is halted acknowledges operations": (
        "arrayd-worker", "server/worker/engine/engine.c", "if (can_go_on && !atomic_load(&s->move.halted)) ad__reply_ack(s, true);",
        "if (can_go_on) ad__reply_ack(s, true);", ["late=1", "moves=1", "bursts=1"]),
    "a slab of an array's own is checked by the size of the array": (
        "arrayd-worker", "server/worker/memory/memory.c", "    if (ad__account_has_room(e->account, all)) return s;",
        "    if (ad__account_has_room(e->account, size)) return s;", ["quota=40960", "shares=1", "commons=0", "forks=1", "moves=0", "clients=3", "operations=1500", "worker_kills=0",
                                                                       "client_kills=0"]),
}


def read_command(target, changed):
    """The command by which make makes a file again after a change, but for the name of the compiler's cache."""
    said = run("make", "-n", "V=1", "NVCC=", "-W", changed, target, f"VARIANT={BUILD.name}").replace("\\\n", " ")
    command = next(line for line in said.splitlines() if f" -o {target} " in line + " ")
    return command[re.search(r"(?<=\s)(gcc|cc) |^(gcc|cc) ", command).start():]


def plant(folder, mutant):
    """Make BUILD again in a folder, with one fault."""
    program, source, before, after, _ = MUTANTS[mutant]
    build, shared = BUILD.relative_to(TOP), f"{program}.so"
    text = (TOP / source).read_text()
    assert text.count(before) == 1, f"{source} has changed: look at MUTANTS"
    (folder / "changed.c").write_text(text.replace(before, after))
    (folder / "sim").mkdir()
    for file in (BUILD / "sim").iterdir():
        if file.is_file() and file.name != shared:
            (folder / "sim" / file.name).symlink_to(file)
    made, target = str(build / "obj" / pathlib.Path(source).with_suffix(".o")), str(build / "sim" / shared)
    compiles = re.sub(r"-MF \S+", f"-MF {folder}/changed.d", read_command(made, source))
    compiles = compiles.replace(f" {source} ", f" {folder}/changed.c ").replace(f"-o {made}", f"-o {folder}/changed.o")
    links = read_command(target, made).replace(f"-o {target}", f"-o {folder}/sim/{shared} {folder}/changed.o")
    links = links.replace(f" {made}", "")  # where it comes from an archive, the first definition counts
    for command in (compiles, links):
        subprocess.run(command, shell=True, cwd=TOP, check=True)


def settings(mutant):
    """Arguments of the simulator with which it finds the fault soon."""
    own = MUTANTS[mutant][-1]
    if own[0].startswith("--"):
        return own
    return [part for text in [*KILLS, *own] for part in ("--set", text)]
