"""Bad days of the machine: the log goes nowhere, descriptors run out, the clock jumps. The server goes on."""
import contextlib
import fcntl
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import raw
from raw import Client, connect, wait_until

SANITIZED = any(word in str(raw.BUILD) for word in ("asan", "tsan", "ubsan"))


def works(client):
    x = client.put(np.arange(1000.0))
    return client.get(client.sum("float64", x)) == 499500


# ---- the log ----

@contextlib.contextmanager
def logging_to(folder, descriptor, *options):
    """A server whose standard error is this."""
    path = str(folder / "s")
    process = subprocess.Popen([raw.PROGRAM, f"--socket={path}", "--backend=cpu", "--kernels-cache=none", *options],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=descriptor)
    raw.RUNNING.append(process)
    wait_until(lambda: raw.answered(path), "it listens")
    try:
        yield process, path
    finally:
        process.send_signal(signal.SIGTERM)
        status = process.wait(raw.WINDOW)
    assert status == 0


def make_noise(path):
    """Write more lines than any pipe takes."""
    for _ in range(30):
        client = Client(path)
        assert works(client)
        client.send(raw.frame(b"\xc1"))
        client.close()


def test_a_full_disk_below_the_log(tmp_path):
    with open("/dev/full", "w") as full, logging_to(tmp_path, full, "--log-level=debug") as (_, path):
        make_noise(path)
        assert works(Client(path))


def test_nobody_reads_the_log_any_more(tmp_path):
    reader, writer = os.pipe()
    with logging_to(tmp_path, writer, "--log-level=debug") as (_, path):
        os.close(writer)
        os.close(reader)
        make_noise(path)
        assert works(Client(path))


def test_whoever_reads_the_log_is_stuck(tmp_path):
    """The reader keeps nobody waiting. When it goes on, it is told how many lines are missing."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 8192)
    said = bytearray()
    with logging_to(tmp_path, writer, "--log-level=debug") as (_, path):
        os.close(writer)
        make_noise(path)
        client = Client(path)
        assert works(client)
        os.set_blocking(reader, False)

        def counted():
            with contextlib.suppress(BlockingIOError):
                said.extend(os.read(reader, 1 << 16))
            Client(path).close()  # a client that comes is worth a line
            return re.search(rb'event="log lines lost" lines=[1-9]', said)

        wait_until(counted, "the missing lines are counted")
        os.set_blocking(reader, True)
    while part := os.read(reader, 1 << 16):
        said.extend(part)
    os.close(reader)
    assert all(line.startswith(b"time=") for line in said.splitlines())


# ---- descriptors ----

def test_descriptors_run_out(start):
    """A client that is in stays in. The others wait or are turned away, and come in when there are descriptors
    again."""
    server = start("--hello-timeout=60", "--handshakes=4000", "--handshakes-each=4000")
    client = Client(server.path)
    assert works(client)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (raw.descriptors(server.pid) + 20,) * 2)
    silent = [connect(server.path) for _ in range(60)]
    wait_until(lambda: server.said('event="cannot accept"'), "there are none left")
    for _ in range(50):
        assert works(client)
    assert sum("cannot accept" in line for line in server.lines) < 100  # it rests between two attempts
    for s in silent:
        s.close()
    again = []

    def comes_in():
        with contextlib.suppress(raw.Closed, ConnectionError):
            again.append(Client(server.path))
        return bool(again)

    wait_until(comes_in, "somebody comes in")
    assert works(again[0]) and works(client)


def first_free_descriptor(pid):
    """Return the number that the process's next descriptor gets."""
    taken = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    return next(n for n in range(len(taken) + 1) if n not in taken)


def forbid_descriptors(pid, most):
    """Let the process open no more of them: the limit is one of numbers, so that it must not be above one that is free."""
    limit = None
    while limit != first_free_descriptor(pid):
        limit = first_free_descriptor(pid)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, most))


def test_a_worker_without_descriptors(start):
    """An operation that needs one fails, and says so. One that needs none goes on."""
    server = start("--slab=1M", "--ring=no")  # a ring's descriptor would be closed again after it was counted
    client = Client(server.path)
    assert works(client)
    usual = resource.prlimit(server.worker, resource.RLIMIT_NOFILE)
    forbid_descriptors(server.worker, usual[1])
    try:
        big = client.put(np.ones(1 << 20))
        with pytest.raises(raw.Failed):
            client.get(big)
        client.free(big)
        assert works(client)
    finally:
        resource.prlimit(server.worker, resource.RLIMIT_NOFILE, usual)
    assert client.get(client.put(np.ones(1 << 20))).sum() == 1 << 20
    assert works(Client(server.path))


# ---- the clock ----

JUMPS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>

/* Ten years forward and back again with every look. */
static time_t jump(void) {
    static atomic_uint looks;
    return atomic_fetch_add(&looks, 1) % 2 ? 315360000 : 0;
}
int clock_gettime(clockid_t clock, struct timespec *out) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, out);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) out->tv_sec += jump();
    return status;
}
int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""


@pytest.mark.skipif(SANITIZED or not shutil.which("cc"), reason="a library is preloaded, which a compiler makes")
def test_the_clock_jumps(start, tmp_path):
    """Nothing ends early or late for it: all that has to do with time is measured by the clock that does not jump."""
    (tmp_path / "jumps.c").write_text(JUMPS)
    library = tmp_path / "jumps.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, tmp_path / "jumps.c", "-ldl"], check=True)
    server = start("--tcp=127.0.0.1:0", "--tcp-open=yes", "--resume-time=3", "--hello-timeout=2",
                   env={"LD_PRELOAD": str(library)})
    from places import port_of
    address = "127.0.0.1", port_of(server, "tcp")
    silent, begin = connect(address), time.monotonic()
    client = Client(address, greet=False)
    client.send(raw.frame(raw.message("hello", 1, 1, raw.FEATURE_RESUME, "raw", {})))
    client.welcome = client.receive_message()
    x = client.put(np.arange(10.0))
    a, b, _ = client.reply(client.ask("share", x[0], 0, 0, 60000))[0]
    client.close()
    bystander = Client(address)
    y = [bystander.fresh(), *x[1:]]
    bystander.reply(bystander.ask("attach", y[0], a % 2**64, b % 2**64))
    assert bystander.get(y).sum() == 45  # neither the lease nor the session is over
    assert not server.said("session forsaken")
    assert Client(silent, greet=False).receive_message()[0] == raw.REQUEST["bye"]
    assert time.monotonic() - begin > 1.5  # hello-timeout: neither at once nor, for which nobody waits, after ten years
    wait_until(lambda: server.said("session forsaken"), "resume-time is over")
    assert works(bystander)
    years = {line[5:9] for line in server.lines if line.startswith("time=")}
    assert len(years) == 2, "the clock has not jumped"


# ---- descriptors ----

REFUSES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

/* As in a sandbox of gVisor: no descriptor passes a socket of the host. */
ssize_t sendmsg(int fd, const struct msghdr *m, int flags) {
    static ssize_t (*real)(int, const struct msghdr *, int);
    if (!real) real = (ssize_t (*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
    if (!m->msg_controllen) return real(fd, m, flags);
    errno = EINVAL;
    return -1;
}
"""

WITHOUT_DESCRIPTORS = """
import os, sys
import numpy as np
import arrayd as ad

def fork(work):
    child = os.fork()
    if not child:
        try:
            os._exit(not work())
        except BaseException as error:
            print(error)
            sys.stdout.flush()
            os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def fails():
    try:
        a.sum().item()
    except ConnectionError:
        return True

a = ad.arange(1000.0)
print(fork(lambda: ad.ones(3).sum().item() == 3), fork(fails), a.sum().item())     # the first that needs a descriptor
ad.sync()                                                                         # no operation has failed for that
host = np.random.default_rng(1).random(1_000_000)
b = ad.asarray(host)
print(bool(((b * 2).get() == host * 2).all()), ad.stat()["bytes_in"] > host.nbytes)
c = ad.arange(3)[ad.asarray([7])]
print(fork(lambda: True), ad.share(b).attach()[0].item() == host[0])
try:
    c.item()
except IndexError as error:
    print("IndexError")
"""


@pytest.mark.skipif(SANITIZED or not shutil.which("cc"), reason="a library is preloaded, which a compiler makes")
def test_a_sandbox_that_passes_no_descriptors(start, tmp_path):
    """Large arrays go through the socket, a fork's child begins a session of its own, and no error comes of it."""
    (tmp_path / "refuses.c").write_text(REFUSES)
    library = tmp_path / "refuses.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, tmp_path / "refuses.c", "-ldl"], check=True)
    server = start()
    done = subprocess.run([sys.executable, "-c", WITHOUT_DESCRIPTORS], capture_output=True, text=True, timeout=raw.WINDOW, env={
        **os.environ, "LD_PRELOAD": str(library), "ARRAYD_URL": f"unix:{server.path}",
        "PYTHONPATH": os.pathsep.join([str(raw.PACKAGE), *sys.path])})
    assert done.stderr == "" and done.stdout.splitlines() == ["0 0 499500.0", "True True", "0 True", "IndexError"]
