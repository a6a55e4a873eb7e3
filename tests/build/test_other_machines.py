"""The client for machines that this one is not: a wheel for aarch64, and code that macOS's compiler and linker take."""
import importlib.util
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import zipfile

import packaging.tags
import pytest

from commands import BUILD, TOP, build_wheels, run
from debian import need_mirror, unpack_packages

pytestmark = pytest.mark.skipif(BUILD.name != "release", reason="wheels are made of the release")
QEMU = "qemu-aarch64-static"
# Of Debian 12, what its Python and NumPy load.
SYSTEM = ["python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libc6", "zlib1g", "libexpat1", "libssl3",
          "libffi8", "liblzma5", "libbz2-1.0", "libuuid1", "libgcc-s1", "libstdc++6", "libcrypt1"]
PROGRAM = """
import platform, numpy as np, arrayd as ad
x = np.arange(100_000, dtype="f8")
a = ad.asarray(x)
np.testing.assert_array_equal((a[::3] * 2).get(), x[::3] * 2)
assert float(a.sum()) == x.sum()
try:
    ad.linalg.inv(ad.zeros((3, 3))).get()
except np.linalg.LinAlgError as error:
    print(platform.machine(), error)
"""
# A client where there are no servers: it refuses what names one on its own machine, and computes over a network.
REMOTE = r"""
#include <arrayd.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    const char *local[] = {"unix:/run/arrayd/arrayd.sock", "embedded:cpu", NULL};
    ad_session *s;
    ad_array *x, *total;
    double result = 0;
    for (int i = 0; i < 3; i++) {
        if (ad_session_open(local[i], &s) != AD_E_URL) return 1;
        printf("%s\n", ad_error_message());
    }
    if (ad_session_open(getenv("SERVER"), &s) || ad_arange(s, ad_int(0), ad_int(10), ad_int(1), AD_FLOAT64, &x) ||
        ad_sum(ad_of(x), &total) || ad_download(total, &result, sizeof result))
        return fprintf(stderr, "%s\n", ad_error_message()), 2;
    printf("%g\n", result);
    ad_array_release(x), ad_array_release(total);
    ad_session_close(s);
}
"""


@pytest.fixture
def server(tmp_path):
    """A server of the CPU backend: its urls, by a Unix socket and by TCP."""
    process = subprocess.Popen([BUILD / "bin/arrayd", f"--socket={tmp_path}/s", "--backend=cpu", "--kernels-cache=none",
                                "--tcp=127.0.0.1:0", "--tcp-open=yes"], stderr=subprocess.PIPE, text=True)
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "event=ready" in line:
            break
    found = re.search(r"tcp:127\.0\.0\.1:\d+", lines[-1])
    assert found, "".join(lines)
    yield {"unix": f"unix:{tmp_path}/s", "tcp": found[0]}
    process.send_signal(signal.SIGTERM)
    process.communicate()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The client's wheel for aarch64."""
    return build_wheels(tmp_path_factory.mktemp("wheels"), "client-aarch64")["arrayd"]


def list_contents(wheel):
    """The files of a wheel, but for those that say what it is for."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()
                if not name.endswith(("/WHEEL", "/RECORD", "_core.abi3.so"))}


def test_the_wheel_is_for_aarch64(wheel, wheels, tmp_path):
    """The wheel has what the wheel for this machine has, with an extension of the other machine that needs the C
    library alone."""
    assert re.fullmatch(r"arrayd-[\d.]+-cp311-abi3-manylinux_2_\d+_aarch64\.whl", wheel.name)
    run(sys.executable, "-m", "twine", "check", "--strict", wheel)
    assert wheel.stat().st_size < 2e6
    assert list_contents(wheel) == list_contents(wheels["arrayd"])
    with zipfile.ZipFile(wheel) as archive:
        extension = archive.extract("arrayd/_core.abi3.so", tmp_path)
    assert re.search(r"Machine: +AArch64", run("readelf", "-h", extension))
    needed = re.findall(r"NEEDED.*\[(.+)\]", run("readelf", "-d", extension))
    assert set(needed) <= {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-aarch64.so.1"}
    versions = {tuple(map(int, each.split("."))) for each in re.findall(r"GLIBC_([\d.]+)", run("readelf", "-V", extension))}
    assert versions and max(versions) <= (2, int(re.search(r"manylinux_2_(\d+)", wheel.name)[1]))


def test_nothing_of_the_compiler_is_linked_in(wheel):
    """No object asks for a function of the compiler's own library (__divti3), whose licence would have to go with it."""
    objects = [path for folder in ("client-c", "client-python", "protocol")
               for path in (TOP / "build/aarch64-linux-gnu.2.28/obj" / folder).rglob("*.o")]
    asked = re.findall(r" UND (\w+)$", run("readelf", "-sW", *objects), re.M)
    assert "malloc" in asked and not [name for name in asked if re.fullmatch(r"__\w+?[shdtx][ift][0-9]?|__aarch64_\w+", name)]


@pytest.mark.skipif(not shutil.which(QEMU), reason=f"there is no {QEMU} here")
def test_the_wheel_computes(wheel, server, tmp_path):
    """Debian's Python for aarch64 runs it in an emulator: over memory that is shared with the server, and over TCP."""
    need_mirror("http://deb.debian.org/debian", "bookworm")
    root = unpack_packages(tmp_path / "other", "bookworm", *SYSTEM, machine="arm64")
    run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version=3.11",
        *(f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 27, 28)), f"--dest={tmp_path}", "numpy>=2,<3")
    for path in (wheel, next(tmp_path.glob("numpy-*.whl"))):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(tmp_path / "site")
    for url in server.values():
        said = run(QEMU, "-L", root, root / "usr/bin/python3.11", "-c", PROGRAM,
                   env={"ARRAYD_URL": url, "PYTHONPATH": str(tmp_path / "site"), "PATH": os.environ["PATH"]})
        assert said.startswith("aarch64 ") and "Singular matrix" in said, said


def list_libraries(data):
    """The libraries that a 64-bit Mach-O file is loaded with: of its commands those of the kind LC_LOAD_DYLIB, 12."""
    at, found = 32, []
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        kind, size, name = struct.unpack_from("<3I", data, at)
        if kind == 12:
            found.append(data[at + name:at + size].rstrip(b"\0").decode())
        at += size
    return found


@pytest.mark.parametrize("machine, kind", [("aarch64", 0x100000c), ("x86_64", 0x1000007)])
def test_it_builds_for_macos(machine, kind):
    """The library and Python's extension compile without a warning and link with nothing but macOS's own library. The
    library has the functions that it has on Linux."""
    target = f"{machine}-macos.11.0"
    folder = TOP / "build" / target
    run("make", f"TARGET={target}", "NVCC=", "extension", f"build/{target}/lib/libarrayd.so.0")
    library, extension = ((folder / path).read_bytes() for path in ("lib/libarrayd.so.0", "python/arrayd/_core.abi3.so"))
    for data in (library, extension):
        assert struct.unpack_from("<2I", data) == (0xfeedfacf, kind)  # 64-bit Mach-O, and the processor
        assert list_libraries(data) == ["/usr/lib/libSystem.B.dylib"]
    symbols = run("nm", "-D", "--defined-only", BUILD / "lib/libarrayd.so.0").splitlines()
    functions = {line.split()[-1].split("@")[0] for line in symbols if " T " in line}
    assert len(functions) > 200 and not [name for name in functions if f"_{name}\0".encode() not in library]
    assert b"_PyInit__core\0" in extension


def test_a_client_elsewhere_says_where_servers_are(server, tmp_path):
    """Addresses of a client on another system than Linux, whose code is compiled for this one."""
    (tmp_path / "remote.c").write_text(REMOTE)
    flags = ["-std=c11", "-D_GNU_SOURCE", "-pthread", "-I.", "-Iclient-c/include", "-DAD_LOCAL_SERVERS=false", '-DAD_VERSION="0"']
    run("cc", *flags, tmp_path / "remote.c", "client-c/net/url.c", "client-c/net/session.c", BUILD / "lib/libarrayd.a", "-o",
        tmp_path / "remote", "-lm", "-ldl")
    unix, embedded, none, total = run(tmp_path / "remote", env={"SERVER": server["tcp"]}).splitlines()
    assert "servers run on Linux" in unix and "/run/arrayd/arrayd.sock" in unix and "'embedded:cpu'" in embedded
    assert "set ARRAYD_URL" in none and total == "45"


def test_what_the_tag_says():
    """Names of platforms in tags, as installers read them."""
    spec = importlib.util.spec_from_file_location("wheel_hook", TOP / "deploy/wheels/hook.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    names = [hook.name_platform(target) for target in ("aarch64-linux-gnu.2.28", "aarch64-macos.11.0", "x86_64-macos.11.0")]
    assert names == ["linux_aarch64", "macosx_11_0_arm64", "macosx_11_0_x86_64"]
    assert names[1] in packaging.tags.mac_platforms((14, 0), "arm64")
    assert hook.name_platform("") in list(packaging.tags.platform_tags())
