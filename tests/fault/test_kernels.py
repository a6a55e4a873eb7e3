"""Wild kernels of users: who notices, and who must not."""
import os

import pytest

import raw
from raw import wait_until
from wild import BYSTANDER, CULPRIT, client, unharmed

def tcp_url(server):
    wait_until(lambda: server.said("event=ready"), "ready")
    line = next(line for line in server.lines if "event=ready" in line)
    return "tcp:" + line.split("tcp:")[1].split()[0].strip('"')


@pytest.fixture
def pair(start):
    """A server with a bystander over TCP, whose domain is another."""
    def make(*options):
        server = start("--tcp=127.0.0.1:0", "--tcp-open=yes", "--kernels-cache=none", *options)
        bystander = client(tcp_url(server), BYSTANDER)
        return server, bystander, int(bystander.stdout.readline())
    return make


KERNEL = 'extern "C" __global__ void wild(int *x) {{ {} }}'
FAULTS = [
    ("((volatile int *)16)[threadIdx.x] = 1;", "illegal memory access"),
    ("__trap();", "__trap()"),
    ("assert(x[0] == 5);", "assertion failed in line 1: x[0] == 5"),
    ("volatile int a[256]; for (long i = 0; i > -(1 << 24); i -= 64) a[i] = 1;", "illegal memory access"),
    ("volatile int zero = x[0]; x[1] = 7 / zero;", "division by zero"),
]


@pytest.mark.parametrize(("body", "message"), FAULTS)
def test_a_kernel_that_faults_ends_its_worker_only(pair, body, message):
    server, bystander, pid = pair()
    culprit = client("unix:" + server.path, CULPRIT, KERNEL.format(body))
    out, err = culprit.communicate(timeout=raw.WINDOW)
    assert culprit.returncode == 0, err
    built, failed, after = out.splitlines()
    assert failed.startswith("DeviceLostError") and "kernel wild: " in failed and message in failed
    assert "in block (" in failed and "0x" not in failed  # no address of the server's
    assert after.split()[0] == "45.0"
    unharmed(bystander, pid)
    wait_until(lambda: server.said("status=3") and server.said("kernel wild"), "it is logged")


def test_the_error_says_where_the_kernel_was_launched(start):
    server = start("--kernels-cache=none")
    code = '''
import arrayd as ad
kernel = ad.RawKernel('extern "C" __global__ void wild(int *x) { __trap(); }', "wild")
x = ad.zeros(1, dtype="int32")
kernel((1,), (1,), (x,))
y = x + 1
try:
    y.get()
except ad.DeviceLostError as error:
    print(error)
'''
    out, err = client("unix:" + server.path, code).communicate(timeout=raw.WINDOW)
    assert "kernel wild: " in out and "wild was launched at <string>:5" in out, out + err


@pytest.mark.parametrize(("condition", "grid", "block", "place"), [
    ("", 1, 1, "block (0, 0, 0), thread (0, 0, 0)"),
    ("if (threadIdx.x == 5 && blockIdx.x == 2) ", 4, 40, "block (2, 0, 0), thread (5, 0, 0)")])
def test_the_error_says_which_thread_it_was(start, condition, grid, block, place):
    server = start("--kernels-cache=none")
    code = f'''
import arrayd as ad
x = ad.zeros(128, dtype="int32")
mild = ad.RawKernel('extern "C" __global__ void mild(int *x) {{ x[threadIdx.x] = 1; }}', "mild")
wild = ad.RawKernel('extern "C" __global__ void wild(int *x) {{ {condition}*(volatile int *)8 = 1; }}', "wild")
mild((1,), (128,), (x,))
wild(({grid},), ({block},), (x,))
try:
    x.get()
except ad.DeviceLostError as error:
    print(error)
'''
    out, err = client("unix:" + server.path, code).communicate(timeout=raw.WINDOW)
    assert f"kernel wild: an illegal memory access in {place}" in out, out + err


@pytest.mark.parametrize("granted", [False, True], ids=["option", "grant"])
def test_a_kernel_that_never_ends(pair, tmp_path, granted):
    file = tmp_path / "principals"
    file.write_text(f"uid:{os.getuid()} kernel-time=1\n" if granted else "")
    server, bystander, pid = pair(f"--kernel-time={3600 if granted else 1}", f"--principals={file}")
    culprit = client("unix:" + server.path, CULPRIT, KERNEL.format("while (*(volatile int *)x == 0) {}"))
    out, err = culprit.communicate(timeout=raw.WINDOW)
    assert culprit.returncode == 0, err
    assert "kernel wild ran longer than 1 s" in out.splitlines()[1]
    unharmed(bystander, pid)
    wait_until(lambda: server.said("kernel wild ran longer than 1 s"), "it is logged")


def test_a_long_series_of_short_kernels_is_no_long_kernel(start):
    server = start("--kernel-time=0.5", "--kernels-cache=none")
    code = r"""
import time, arrayd as ad
from arrayd import _core
module = _core.build('extern "C" __global__ void f(int *x) { for (volatile int i = 0; i < 1000000; i++) {} x[0]++; }', (), ())
x, begin, n = ad.zeros(1, dtype="int32"), time.monotonic(), 0
while time.monotonic() - begin < 1:  # however fast this machine is
    for _ in range(100):
        module.launch("f", (1, 1, 1), (1, 1, 1), 0, (x,), 1)
        n += 1
    assert x.get()[0] == n
"""
    done = client("unix:" + server.path, code)
    out, err = done.communicate(timeout=raw.WINDOW)
    assert done.returncode == 0, err


TEXTURES = r"""
import os, signal, numpy as np, arrayd as ad
from arrayd.cuda import runtime
from arrayd.cuda.texture import *
elements = CUDAarray(ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat), 4,
                     flags=runtime.cudaArraySurfaceLoadStore)
elements.copy_from(np.arange(4, dtype="float32"))
resource = ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=elements)
texture, surface = TextureObject(resource, TextureDescriptor((1,))), SurfaceObject(resource)
source = '''extern "C" __global__ void shift(float *out, cudaTextureObject_t t, cudaSurfaceObject_t s) {
    out[threadIdx.x] = tex1D<float>(t, threadIdx.x);
    __syncthreads();
    surf1Dwrite(out[threadIdx.x] + 10, s, threadIdx.x * 4);
}'''
kernel, out = ad.RawKernel(source, "shift"), ad.zeros(4, dtype="float32")
for _ in range(3):
    kernel((1,), (4,), (out, texture, surface))
    print(out.get().tolist())
    os.kill(ad.stat()["worker_pid"], signal.SIGKILL)
"""


def test_textures_outlive_a_worker(start):
    server = start("--kernels-cache=none")
    out, err = client("unix:" + server.path, TEXTURES).communicate(timeout=raw.WINDOW)
    assert out.splitlines()[:3] == [str([float(i + shift) for i in range(4)]) for shift in (0, 10, 20)], err


BUILD = r"""
import arrayd as ad
from arrayd import _core
print(ad.session_info()["kernels"])
try:
    _core.build('extern "C" __global__ void f() {}', (), ())
    print("built")
except PermissionError as error:
    print(error)
"""


@pytest.mark.parametrize(("option", "local", "remote"), [("unix", True, False), ("all", True, True), ("none", False, False)])
def test_who_may_run_kernels(start, option, local, remote):
    server = start("--tcp=127.0.0.1:0", "--tcp-open=yes", f"--kernels={option}", "--kernels-cache=none")
    for url, may in ((f"unix:{server.path}", local), (tcp_url(server), remote)):
        out, err = client(url, BUILD).communicate(timeout=raw.WINDOW)
        known, said = out.splitlines()
        assert known == str(may) and (said == "built" if may else "option kernels" in said), err


def test_who_may_run_kernels_shares_no_worker(start):
    server = start("--tcp=127.0.0.1:0", "--tcp-open=yes", "--kernels=unix")
    code = "import arrayd as ad; print(ad.stat()['worker_pid'])"
    pids = [client(url, code).communicate(timeout=raw.WINDOW)[0] for url in ("unix:" + server.path, tcp_url(server)) * 2]
    assert pids[0] == pids[2] != pids[1] == pids[3]


def test_others_go_on_while_one_compiles(start):
    """The session that waits for the compiler holds up nobody of its own worker."""
    server = start("--kernels-cache=none")
    slow = r"""
import arrayd as ad
from arrayd import _core
source = 'template <int N> struct f { static const int v = f<N - 1>::v + f<N - 2>::v * 0; int m[N]; };' \
    'template <> struct f<0> { static const int v = 0; }; template <> struct f<1> { static const int v = 1; };' \
    'extern "C" __global__ void k(int *x) { x[0] = f<800>::v; }'
print("begin", flush=True)
_core.build(source, (), ())
print("end", flush=True)
"""
    compiling = client("unix:" + server.path, slow)
    assert compiling.stdout.readline() == "begin\n"
    code = "import arrayd as ad; assert float(ad.arange(5.0).sum()) == 10; print('done')"
    out, err = client("unix:" + server.path, code).communicate(timeout=raw.WINDOW)
    assert out == "done\n", err
    out, err = compiling.communicate(timeout=raw.WINDOW)
    assert out == "end\n", err


def test_a_variable_that_never_is_set_up(start):
    """Loading a module may run code of the user, too."""
    server = start("--kernel-time=1", "--kernels-cache=none")
    code = r"""
import arrayd as ad
from arrayd import _core
try:
    _core.build('static int f() { while (true) __threadfence(); return 1; }\n__device__ int x = f();', (), ())
except ad.DeviceLostError as error:
    print(error)
"""
    out, err = client("unix:" + server.path, code).communicate(timeout=raw.WINDOW)
    assert "ran longer than 1 s" in out, err
