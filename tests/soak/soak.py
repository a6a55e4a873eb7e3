"""A soak: many clients, each doing what programs.py has, on a server whose memory is short, while some are killed, some
lose their connections, and strangers send rubbish.

    soak.py [--build build/release] [--seconds 600] [--clients 16] [--seed N] [--trouble SECONDS] [--late]

In rounds. After each, when all have gone, nothing of theirs may be left: arrays, shared memory, names, sessions,
descriptors, threads. Memory must not grow from round to round. Every result is compared with NumPy's. With --trouble the
server has its own: every so many seconds (on average) a worker is killed, or arrayd is upgraded; then a program may lose
what it was changing in place, if it is told so, and memory is watched in arrayd only, as no worker gets old. --late: on a
backend that completes operations later than it is asked to, as a GPU does. The last line is a count; the exit status is 1
where something was wrong.
"""
import argparse
import collections
import contextlib
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
EMPTY = ["used_bytes", "shared_buffers", "shared_bytes", "capabilities", "published", "orphans", "host_bytes",
         "sessions", "compile_waiting"]
OPTIONS = ["--memory=96M", "--host-memory=256M", "--slab=4M", "--hello-timeout=5",
           "--tcp=127.0.0.1:0", "--log-level=info"]
GRANTS = {"alice": "names=yes", "bob": "memory=24M memory-each=16M names=yes", "carol": "priority=low names=yes"}
GROWTH = 32 * MIB  # of memory, which no allocator keeps to the byte
ENGINE_THREADS = 4  # of a worker, for long operations of one principal; each is started when first needed


class Wrong(Exception):
    """A fault that a soak must not find."""


# ---- the server ----

Place = collections.namedtuple("Place", "server path address tokens")


def start(folder, raw, places, options):
    tokens, lines = {}, []
    for name, grants in GRANTS.items():
        tokens[name], line = places.make_token(name)
        lines.append(f"{line} {grants}\n")
    file = folder / "tokens"
    file.write_text("".join(lines))
    file.chmod(0o600)
    comeback = 2 + (options.clients // 4 if options.trouble else 0)  # as many have to come back at once
    server = raw.Server(*OPTIONS, f"--resume-time={comeback}", f"--tokens={file}", f"--kernels-cache={folder}/kernels",
                        folder=str(folder), env={"ARRAYD_CPU_LATE": "1"} if options.late else {})
    return Place(server, server.path, ("127.0.0.1", places.port_of(server, "tcp")), tokens)


def ctl(place, raw, command, *options):
    out = subprocess.run([raw.BUILD / "bin/arrayctl", command, "--json", f"--socket={place.path}", *options],
                         capture_output=True, text=True, timeout=60)
    if out.returncode:
        raise Wrong(f"arrayctl {command}: {out.stderr}")
    return json.loads(out.stdout)


def process(pid):
    """Resident bytes, descriptors, threads."""
    with open(f"/proc/{pid}/status") as f:
        fields = dict(line.split(":", 1) for line in f)
    return {"bytes": int(fields["VmRSS"].split()[0]) << 10, "threads": int(fields["Threads"]),
            "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}


# ---- the clients ----

class Clients:
    """Processes that are replaced as they go, are killed, and lose their connections."""

    def __init__(self, seed, count, urls, may_lose):
        self.random, self.count, self.urls, self.may_lose = random.Random(seed), count, urls, may_lose
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["programs"])
        self.running = {}
        self.done, self.lost, self.killed, self.ended = collections.Counter(), 0, 0, 0

    def begin(self):
        import programs
        url, token, without = self.random.choice(self.urls)
        ours, theirs = self.context.Pipe(duplex=False)
        client = self.context.Process(target=programs.run, args=(
            url, token, without, self.random.randrange(1 << 31), theirs, self.may_lose))
        client.start()
        theirs.close()
        self.running[ours] = client

    def hear(self, pipe):
        if not self.told(pipe):
            self.end(pipe)

    def told(self, pipe):
        """Read of one more program that it is over. False: there are no more."""
        try:
            name, number, lost, error = pipe.recv()
        except (EOFError, ConnectionError):
            return False
        self.done[name] += 1
        self.lost += lost
        if error:
            raise Wrong(f"program {name}, seed {number}:\n{error}")
        return True

    def end(self, pipe, killed=False):
        client = self.running.pop(pipe)
        client.join(60)
        if not killed and client.exitcode != 0:
            raise Wrong(f"a client ended with {client.exitcode}")
        self.ended += 1
        pipe.close()

    def kill(self, pipe):
        """Kill a client as it is: what it has sent and not yet told is lost."""
        client = self.running[pipe]
        client.kill()
        self.killed += 1
        while self.told(pipe):
            pass
        self.end(pipe, killed=True)

    def round(self, seconds, also):
        """Run so many clients for so long. Then those that are left are ended, half of them by a signal."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            while len(self.running) < self.count:
                self.begin()
            for pipe in multiprocessing.connection.wait(list(self.running), 0.05):
                self.hear(pipe)
            if self.running and self.random.random() < 0.02:
                self.kill(self.random.choice(list(self.running)))
            also()
        for pipe in list(self.running)[::2]:
            self.kill(pipe)
        while self.running:
            if not (ready := multiprocessing.connection.wait(list(self.running), 120)):
                raise Wrong("a client does not end")
            for pipe in ready:
                self.hear(pipe)

    def stop(self):
        for client in self.running.values():
            client.kill()


class Strangers:
    """Connections that say nothing, rubbish, or go in the middle."""

    def __init__(self, seed, addresses, raw):
        self.random, self.addresses, self.raw, self.open = random.Random(seed), addresses, raw, []

    def come(self):
        raw, rng = self.raw, self.random
        if rng.random() > 0.3:
            return
        with contextlib.suppress(OSError):
            s = raw.connect(rng.choice(self.addresses))
            self.open.append(s)
            what = rng.randrange(4)
            if what == 0:
                s.sendall(rng.randbytes(rng.randrange(1, 300)))
            elif what == 1:
                s.sendall(raw.hello()[:rng.randrange(1, 20)])
            elif what == 2:
                s.sendall(raw.hello() + raw.frame(rng.randbytes(rng.randrange(1, 300))))
        while len(self.open) > 20:
            self.open.pop(rng.randrange(len(self.open))).close()

    def go(self):
        while self.open:
            self.open.pop().close()


class Trouble:
    """Workers that are killed, and upgrades (to the same program)."""

    def __init__(self, seed, place, raw, seconds):
        self.random, self.place, self.raw, self.seconds = random.Random(seed), place, raw, seconds
        self.killed, self.upgraded = set(), 0
        self.plan()

    def plan(self):
        self.next = time.monotonic() + self.random.expovariate(1 / self.seconds) if self.seconds else float("inf")

    def come(self):
        if time.monotonic() < self.next:
            return
        if self.random.random() < 0.3:
            ctl(self.place, self.raw, "upgrade", "--force")
            self.upgraded += 1
        elif workers := self.raw.children(self.place.server.pid):
            worker = self.random.choice(workers)
            os.kill(worker, signal.SIGKILL)
            self.killed.add(worker)
        self.plan()


# ---- what is left ----

def tidy(place, raw):
    """Names of those that were killed stay, as they should: they are taken back."""
    for name in ctl(place, raw, "names"):
        user = name["principal"].removeprefix("token:")
        client = raw.Client(place.address, token=place.tokens[user]) if user in place.tokens else raw.Client(place.path)
        client.reply(client.ask("unpublish", name["name"]))
        client.close()


def settle(place, raw, limit=60):
    """Wait until nothing of the clients is left; the server's figures then."""
    until = time.monotonic() + limit
    while True:
        said = ctl(place, raw, "status")
        left = {(w["domain"], name): w["counters"][name] for w in said["workers"] for name in EMPTY
                if w["counters"].get(name)}
        if not said["sessions"] and not left and not said["arrayd"]["handshakes"]:
            return said
        if not said["sessions"]:
            tidy(place, raw)
        if time.monotonic() > until:
            raise Wrong(f"still there after {limit} s: {left}, {len(said['sessions'])} sessions")
        time.sleep(0.05)


def look(place, raw, trouble):
    """Read what each process of the server has; descriptors of kept slabs are not counted."""
    said = settle(place, raw)
    workers = {w["domain"]: w for w in said["workers"]}
    seen = {"front": process(place.server.pid)}
    seen["front"]["descriptors"] -= sum(w["kept_slabs"] for w in workers.values())
    for domain, w in workers.items():
        if w["starts"] != 1 and not trouble.seconds:
            raise Wrong(f"worker {domain} was started {w['starts']} times")
        seen[domain] = process(w["pid"])
        seen[domain]["descriptors"] -= w["counters"]["slabs"]
        seen[domain]["bytes"] -= w["counters"]["slab_bytes"]
        if trouble.seconds:
            seen[domain]["bytes"] = 0
    return seen


def compare(rounds):
    """The last round with those after warming up, which is the first third; not with the latest, as growth may be
    slow."""
    last, before = rounds[-1], rounds[:-1]
    begun = before[len(before) // 3:len(before) // 2 + 1]
    for name, seen in last.items():
        known = [r[name] for r in begun if name in r]
        if not known:
            continue
        for what, most in (("descriptors", 4), ("threads", 0 if name == "front" else ENGINE_THREADS), ("bytes", GROWTH)):
            limit = max(k[what] for k in known) + most
            if len(known) > 1 and seen[what] > limit:
                raise Wrong(f"{name}: {what} have grown: {[r[name][what] for r in rounds if name in r]}")


def check_log(server, trouble):
    for line in list(server.lines):
        if "worker exited" in line and (found := re.search(r"worker=(\d+) status=(\d+) signal=(\d+)", line)):
            worker, *ended = map(int, found.groups())
            killed = worker in trouble.killed or "level=info" in line  # one that was still starting when an upgrade came
            if (ended == [0, 0] or killed and ended == [0, 9]) and trouble.seconds:
                continue
        if any(word in line for word in ("level=error", "Sanitizer", "runtime error", "device lost", "worker exited")):
            raise Wrong(f"the log says: {line}")


# ---- the whole ----

def budget(rng):
    """Bytes that a connection may pass: few, or many."""
    return rng.randrange(1 << rng.randrange(8, 24))


def urls_of(place, proxies):
    """Return where clients connect to: url, token, and what they leave out there."""
    urls = [(f"unix:{place.path}", None, set())] * 3 + [(f"unix:{proxies[0].path}", None, set())]
    for token in place.tokens.values():
        urls += [(f"tcp:127.0.0.1:{port}", token, {"forks", "kernels"}) for port in (place.address[1], proxies[1].port)]
    return urls


def tell(number, clients, proxies, trouble, seen):
    print(f"round {number}: {sum(clients.done.values())} programs, {clients.ended} clients, {clients.killed} killed, "
          f"{sum(p.connections for p in proxies)} connections to be cut, {len(trouble.killed)} workers killed, "
          f"{trouble.upgraded} upgrades, {clients.lost} programs lost something; " +
          ", ".join(f"{name} {s['bytes'] / MIB:.0f} MiB {s['descriptors']} fds {s['threads']} threads"
                    for name, s in seen.items()), flush=True)


@contextlib.contextmanager
def kept_log(server, file):
    """Keep the server's log in the file when something was wrong."""
    try:
        yield
    except BaseException:
        file.write_text("\n".join(server.lines))
        print(f"soak: the server's log: {file}")
        raise


def soak(options, folder, raw, places, cutting):
    place, rng, rounds = start(folder, raw, places, options), random.Random(options.seed), []
    with contextlib.ExitStack() as ends:
        proxies = [ends.enter_context(cutting.Proxy(to, at, lambda n: (budget(rng), budget(rng)), options.seed))
                   for to, at in ((place.path, f"{folder}/cut"), (place.address, None))]
        proxies[0].path = f"{folder}/cut"
        clients = Clients(options.seed, options.clients, urls_of(place, proxies), bool(options.trouble))
        trouble = Trouble(options.seed, place, raw, options.trouble)
        strangers = Strangers(options.seed, [place.path, place.address], raw)
        ends.callback(clients.stop)
        ends.enter_context(kept_log(place.server, options.build / "soak.log"))
        ends.callback(strangers.go)
        until = time.monotonic() + options.seconds
        while time.monotonic() < until or len(rounds) < 3:
            clients.round(options.seconds / options.rounds, lambda: (strangers.come(), trouble.come()))
            strangers.go()
            rounds.append(look(place, raw, trouble))
            tell(len(rounds), clients, proxies, trouble, rounds[-1])
            compare(rounds)
            check_log(place.server, trouble)
    if place.server.stop() != 0:
        raise Wrong("the server ended badly:\n" + "\n".join(place.server.lines[-20:]))
    return clients


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build/release", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("SOAK_SECONDS", 600)))
    parser.add_argument("--clients", type=int, default=int(os.environ.get("SOAK_CLIENTS", 16)))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SOAK_SEED", time.time())))
    parser.add_argument("--rounds", type=int, help="into so many it is divided")
    parser.add_argument("--trouble", type=float, default=float(os.environ.get("SOAK_TROUBLE", 0)),
                        help="seconds between kills of workers and upgrades, on average; 0: there are none")
    parser.add_argument("--late", action="store_true", default=bool(os.environ.get("SOAK_LATE")),
                        help="operations are complete later")
    options = parser.parse_args()
    options.rounds = options.rounds or max(3, int(options.seconds / 30))
    build = options.build.resolve()
    os.environ["ARRAYD_BUILD"] = str(build)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(build / "python"), str(HERE)])
    sys.path[:0] = [str(build / "python"), str(HERE), str(HERE.parent / "fault")]
    import cutting
    import places
    import raw
    print(f"soak: {options.seconds:.0f} s, {options.clients} clients, seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="arrayd-soak-") as folder:
        try:
            clients = soak(options, pathlib.Path(folder), raw, places, cutting)
        except Wrong as wrong:
            print(f"soak: wrong: {wrong}")
            return 1
        finally:
            raw.leave_nothing()
    print(f"soak: {sum(clients.done.values())} programs of {clients.ended} clients, nothing wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
