"""A program that names no server finds one: as another user, and where there is a GPU."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import containers
import raw

STRANGER, GROUP = 54321, 54322
as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be somebody else")
SAY = "import arrayd as ad; ad.zeros(3); i = ad.session_info(); print(i['url'], i['backend'])"
# Becomes somebody else once it has what it needs: the build need not be theirs to read.
ASK = """
import os, sys, arrayd as ad
import numpy
uid, groups, url = int(sys.argv[1]), eval(sys.argv[2]), eval(sys.argv[3])
os.setgroups(groups); os.setgid(uid); os.setuid(uid)
try:
    ad.connect(url) if url else ad.zeros(3)
    print(ad.session_info()["url"])
except Exception as error:
    print(type(error).__name__, error)
"""


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ARRAYD_", "XDG_RUNTIME"))}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(raw.PACKAGE), *sys.path]), **more}


def hide_system_folder():
    """What a command begins with so that it finds no server of this machine's own: /run/arrayd is there, and empty."""
    if not pathlib.Path("/run/arrayd").exists():
        return []
    if why := containers.refusal():
        pytest.skip(f"this machine has a server's folder, which cannot be hidden: {why}")
    return ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /run/arrayd && exec "$@"', "sh"]


def ask(folder, groups=(), url=None, uid=STRANGER):
    """Return what a program of another user says that looks for its server in that runtime folder."""
    done = subprocess.run([*hide_system_folder(), sys.executable, "-c", ASK, str(uid), repr(list(groups)), repr(url)], text=True, timeout=60,
                          capture_output=True, env=environment(XDG_RUNTIME_DIR=str(folder), ARRAYD_BIN="/bin/false"))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def runtime(tmp_path_factory):
    """A runtime folder that everybody may search, in a place that everybody may reach."""
    folder = pathlib.Path("/tmp") / f"arrayd-finding-{os.getpid()}"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


def serve(start, runtime, mode, group=None):
    server = start(f"--socket={runtime}/arrayd.sock", f"--socket-mode={mode}")
    if group:
        os.chown(runtime / "arrayd.sock", 0, group)
    return server


@as_root
@pytest.mark.parametrize("url", [False, True])
def test_a_socket_that_may_not_be_opened_is_no_reason_to_go_on(start, runtime, url):
    """A server of the program's own, started instead, would hide that the group is missing."""
    serve(start, runtime, "0600")
    said = ask(runtime, url=f"unix:{runtime}/arrayd.sock" if url else None)
    assert said.startswith("PermissionError"), said
    for part in (f"unix:{runtime}/arrayd.sock", "user 54321", "mode 0600, owner root:root", "ask root", "embedded:auto"):
        assert part in said, said


@as_root
def test_the_group_to_join_is_named(start, runtime):
    serve(start, runtime, "0660", GROUP)
    said = ask(runtime)
    assert said.startswith("PermissionError") and f"mode 0660, owner root:{GROUP}" in said, said
    assert f"add yourself to group {GROUP} and log in again" in said
    assert ask(runtime, [GROUP]) == f"unix:{runtime}/arrayd.sock"


@as_root
def test_a_folder_that_may_not_be_searched_is_named(start, runtime):
    (runtime / "in").mkdir(mode=0o750)
    os.chown(runtime / "in", 0, GROUP)
    serve(start, runtime / "in", "0666")
    url = f"unix:{runtime}/in/arrayd.sock"
    said = ask(runtime, url=url)
    assert said.startswith("PermissionError") and f"the folder {runtime}/in (mode 0750, owner root:{GROUP})" in said, said
    assert f"add yourself to group {GROUP}" in said
    assert ask(runtime, [GROUP], url) == url


@as_root
def test_somebody_elses_runtime_folder_is_passed_over(start, runtime):
    """su and sudo leave it in the environment. The next places are looked at, at last for a program to embed."""
    serve(start, runtime, "0666")
    runtime.chmod(0o700)
    said = ask(runtime)
    assert str(runtime) not in said and "arrayd" in said, said


@as_root
def test_what_is_not_there_and_where_nobody_listens_is_passed_over(start, runtime):
    embedded = "ConnectionError embedded:auto"
    assert ask(runtime).startswith(embedded)
    server = serve(start, runtime, "0666")
    server.expected_status = server.kill()
    assert (runtime / "arrayd.sock").exists() and ask(runtime).startswith(embedded)
    (runtime / "arrayd.sock").unlink()
    (runtime / "arrayd.sock").symlink_to(runtime / "nowhere")
    assert ask(runtime).startswith(embedded)


# ---- the backend of an embedded server ----

# $1: a file among the devices, or none; the program follows.
DEVICES = """
set -e
file=$1
shift
mount --make-rprivate /
mkdir -p "$PLACE/dev"
mount -t tmpfs none "$PLACE/dev"
for name in null zero urandom random full; do touch "$PLACE/dev/$name"; mount --bind /dev/$name "$PLACE/dev/$name"; done
mkdir -m 1777 "$PLACE/dev/shm"
[ -z "$file" ] || touch "$PLACE/dev/$file"
mount --rbind "$PLACE/dev" /dev
exec "$@"
"""


def embed(tmp_path, device, code=SAY, **more):
    """Return what a program says that finds no server, on a machine with that file among its devices and no other of a
    GPU."""
    if why := containers.refusal():
        pytest.skip(f"no namespaces: {why}")
    return subprocess.run([*containers.unshare(False), "sh", "-c", DEVICES, "devices", device, sys.executable, "-c", code],
                          text=True, timeout=60, capture_output=True, env=environment(PLACE=str(tmp_path), ARRAYD_BIN=str(raw.PROGRAM), **more))


@pytest.fixture
def backends(backend, tmp_path):
    """A folder with that backend, which says it is cuda, and the real one of the CPU."""
    folder = tmp_path / "backends"
    folder.mkdir()
    for library in (backend / "libarrayd-cuda.so", raw.BUILD / "bin" / "libarrayd-cpu.so"):
        (folder / library.name).symlink_to(library.resolve())
    return folder


def test_an_embedded_server_takes_the_gpu_where_there_is_one(backends, tmp_path):
    done = embed(tmp_path, "nvidiactl", ARRAYD_BACKEND_PATH=str(backends))
    assert (done.stdout, done.stderr) == ("embedded:auto cuda\n", "")
    done = embed(tmp_path, "nvidiactl", ARRAYD_BACKEND_PATH=str(backends), ARRAYD_BACKEND="cpu")
    assert (done.stdout, done.stderr) == ("embedded:auto cpu\n", "")
    done = embed(tmp_path, "nvidiactl", ARRAYD_BACKEND_PATH=str(backends), ARRAYD_URL="embedded:cpu")
    assert (done.stdout, done.stderr) == ("embedded:cpu cpu\n", "")


def test_where_there_is_no_gpu_its_backend_is_not_loaded(backends, tmp_path):
    code = SAY + "; print('cuda' in open(f\"/proc/{ad.stat()['worker_pid']}/maps\").read())"
    done = embed(tmp_path, "", code, ARRAYD_BACKEND_PATH=str(backends))
    assert (done.stdout, done.stderr) == ("embedded:auto cpu\nFalse\n", "")


@pytest.mark.parametrize("wrong", ["missing", "no library", "no device"])
def test_a_gpu_that_cannot_be_used_is_said_and_the_cpu_taken(backends, tmp_path, wrong):
    library = backends / "libarrayd-cuda.so"
    more = {}
    if wrong == "no device":
        more["AD_TEST_NO_DEVICE"] = "1"
    else:
        library.unlink()
        if wrong == "no library":
            library.write_text("nothing")
    done = embed(tmp_path, "nvidiactl", ARRAYD_BACKEND_PATH=str(backends), **more)
    assert done.stdout == "embedded:auto cpu\n", done.stderr
    assert done.stderr.count("there is a GPU, but cuda cannot be used") == 1, done.stderr
    done = embed(tmp_path, "nvidiactl", ARRAYD_BACKEND_PATH=str(backends), ARRAYD_URL="embedded:cuda", **more)
    assert done.stdout == "" and "ConnectionError: embedded:cuda" in done.stderr, done.stderr
