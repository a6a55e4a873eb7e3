"""The system refuses workers the calls that they do not need. A kernel of the cpu backend is native code, and tries
some."""
import errno
import json
import os
import platform
import re
import subprocess
import sys

import pytest

import raw

pytestmark = raw.cpu_only

TOP = raw.TOP
# Numbers of calls that are refused, and arguments with which nothing happens where they are not.
NUMBERS = {"x86_64": {"socket": 41, "connect": 42, "bind": 49, "listen": 50, "ptrace": 101, "setuid": 105, "chroot": 161,
                      "mount": 165, "reboot": 169, "init_module": 175, "kexec_load": 246, "keyctl": 250, "unshare": 272,
                      "perf_event_open": 298, "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310,
                      "finit_module": 313, "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425, "pidfd_getfd": 438},
           "aarch64": {"socket": 198, "connect": 203, "ptrace": 117, "mount": 40, "bpf": 280, "unshare": 97}}
CALLS = NUMBERS.get(platform.machine(), {})
if raw.BUILD.name == "asan":
    CALLS.pop("ptrace", None)  # the sanitizer looks for leaks with it
# The first element of a row is the number of the call, and then its result: 0, or the error.
SOURCE = """
extern "C" long syscall(long number, ...);
extern "C" int *__errno_location();
extern "C" __global__ void call_system(long long *x, int n) {
    for (int i = 0; i < n; i++) x[i] = syscall(x[i], -1L, -1L, -1L, -1L, -1L, -1L) < 0 ? *__errno_location() : 0;
}
"""
PROGRAM = """
import json, sys
import arrayd as ad
numbers = json.loads(sys.argv[1])
x = ad.array(numbers, dtype="int64")
ad.RawKernel(sys.argv[2], "call_system")((1,), (1,), (x, len(numbers)))
with open(f"/proc/{ad.stat()['worker_pid']}/status") as status:
    print(json.dumps([x.get().tolist(), status.read()]))
"""


def run_kernel(server, numbers):
    """Return the error that each of these calls gives in a worker, and whether its system calls are filtered."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(numbers), SOURCE], capture_output=True, text=True,
                          timeout=raw.WINDOW, env={**os.environ, "ARRAYD_URL": f"unix:{server.path}"})
    assert done.returncode == 0, done.stderr
    results, status = json.loads(done.stdout)
    return results, re.search(r"^Seccomp:\s*(\d)", status, re.M)[1] == "2"


@pytest.mark.skipif(not CALLS, reason="the numbers of system calls are not known for this machine")
def test_calls_that_no_worker_needs_are_refused(start):
    results, filtered = run_kernel(start(), list(CALLS.values()))
    assert filtered and dict(zip(CALLS, results)) == dict.fromkeys(CALLS, errno.EPERM)


def test_calls_that_came_later_do_not_exist(start):
    """A C library tries a newer call, and uses an older one where that does not exist."""
    results, filtered = run_kernel(start(), [447, 460, 100_000])
    assert filtered and results == [errno.ENOSYS] * 3


@pytest.mark.skipif(not CALLS, reason="the numbers of system calls are not known for this machine")
@pytest.mark.parametrize("option", ["all", "logged"])
def test_they_can_be_allowed(start, option):
    """The calls then fail because their arguments are none: each is made."""
    names = ["connect", "setns"]
    results, filtered = run_kernel(start(f"--system-calls={option}"), [CALLS[name] for name in names])
    assert filtered == (option == "logged")
    assert results == [errno.EBADF, errno.EBADF]


def test_other_words_are_refused():
    done = subprocess.run([raw.PROGRAM, "--system-calls=some"], capture_output=True, text=True, timeout=raw.WINDOW)
    assert done.returncode == 2 and "auto needed logged all" in done.stderr.replace(",", "").replace(" or ", " ")


def test_a_call_stands_in_the_list_once():
    """Calls of the jail of compilers, which the worker's list covers, are in it, too."""
    listed = re.findall(r"^AD_(?:SYSTEM|OLD)_CALL\((\w+)\)", (TOP / "server/worker/system_calls.def").read_text(), re.M)
    jail = (TOP / "server/compile/jail.c").read_text()
    lists = "".join(re.findall(r"_calls\[\] = \{(.*?)\};", jail, re.S))
    inside = set(re.findall(r"SYS_(\w+)", lists))
    assert len(listed) == len(set(listed)) and inside and inside <= set(listed), inside - set(listed)
