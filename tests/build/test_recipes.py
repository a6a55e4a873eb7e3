"""Recipes of the guide that need what the packages of the tests do not have: each runs where it is installed."""
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import pytest

import pages
from commands import BUILD, COMMAND, TOP, run

RECIPES = (TOP / "docs/guide/recipes.md").read_text()
pytestmark = pytest.mark.skipif(BUILD.name != "release", reason="the package is imported")


def needs(module):
    return pytest.mark.skipif(not importlib.util.find_spec(module), reason=f"{module} is not installed")


def section(title):
    """The texts of the blocks below a heading."""
    return [block.text for block in pages.blocks(re.split(r"^## ", RECIPES.split(f"\n## {title}\n")[1], flags=re.M)[0])]


@pytest.fixture(scope="module")
def environment():
    """Return what programs need to find a server of their own, in a folder with a short name."""
    folder = tempfile.mkdtemp(prefix="recipe-")
    os.chmod(folder, 0o755)
    server = subprocess.Popen([BUILD / "bin/arrayd", f"--socket={folder}/arrayd.sock", "--backend=cpu", "--kernels-cache=none"],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        if "event=ready" in line:
            break
    path = os.pathsep.join(filter(None, [str(BUILD / "python"), os.environ.get("PYTHONPATH")]))
    yield {**os.environ, "ARRAYD_URL": f"unix:{folder}/arrayd.sock", "PYTHONPATH": path, "HOME": folder}
    server.terminate()
    server.communicate(timeout=COMMAND)
    shutil.rmtree(folder, ignore_errors=True)


def compute(program, environment, tmp_path):
    """Return what a program in a file prints."""
    (tmp_path / "recipe.py").write_text(program)
    done = subprocess.run([sys.executable, tmp_path / "recipe.py"], capture_output=True, text=True, timeout=COMMAND,
                          env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs("torch")
@pytest.mark.parametrize("context", ["spawn", "fork"])
def test_batches_for_pytorch(context, environment, tmp_path):
    """All rows come once, but for those of the last batch, which is not full."""
    code, = section("PyTorch DataLoader")
    compute('import arrayd as ad\nad.publish("training/images", ad.arange(240_000.0).reshape(60_000, 4))\n', environment, tmp_path)
    code = code.replace('"spawn"', f'"{context}"') + "    print(len({float(x) for batch in loader for x in batch[:, 0]}))\n"
    assert compute(code, environment, tmp_path).split() == ["234", str(234 * 256), str(234 * 256)]


RAY = 'import os, ray\nray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)\n'


@pytest.fixture
def ray_environment(environment):
    """Ray asks nobody outside, and keeps its files in the folder of the server."""
    return {**environment, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": environment["HOME"]}


@needs("ray")
def test_actors_of_ray_pass_handles(ray_environment, tmp_path):
    code, _ = section("Ray")
    assert compute(RAY + code, ray_environment, tmp_path).split()[-1] == "999000.0"


FREED = """
import time
before = ad.stat()["used_bytes"]
del taken
while ad.stat()["used_bytes"] > before - 8_000_000:     # Ray tells the camera some time later
    time.sleep(0.01)
print("freed")
"""


@needs("ray")
def test_the_transport_for_ray(ray_environment, tmp_path):
    """Arrays do not go through Ray, and their memory is free when Ray has dropped the result."""
    _, code = section("Ray")
    code = code.replace("Camera.remote().take", "(camera := Camera.remote()).take")
    printed = compute(RAY + code + FREED, ray_environment, tmp_path).split()
    assert printed == ["499999500000.0", "freed"]


# ---- sandboxes ----

UNTRUSTED = """
import os
import numpy as np
import arrayd as ad
host = np.random.default_rng(1).random(1_000_000)       # as much as else goes through shared memory
a = ad.asarray(host)
print(bool(((a * 2).get() == host * 2).all()))
print(os.path.exists("/dev/nvidia0"), os.getpid() < 10)
child = os.fork()
if not child:
    os._exit(float(ad.ones(3).sum()) != 3)
print(os.waitpid(child, 0)[1], float(a.sum()) == float(ad.asarray(host).sum()))
"""


PATH = os.pathsep.join([os.path.realpath(each) for each in (BUILD / "python", *sys.path)])


def folders(tmp_path):
    """Return what Python, the package and the program are in, besides /usr."""
    (tmp_path / "untrusted.py").write_text(UNTRUSTED)
    real = {os.path.realpath(each) for each in (sys.prefix, sys.base_prefix, BUILD, TOP / "client-python", tmp_path)}
    return sorted(each for each in real if not each.startswith("/usr/"))


def in_bubblewrap(environment, tmp_path, program):
    """The command of the page, with this Python and package."""
    command = next(text for text in section("A sandbox without devices") if text.startswith("bwrap"))
    command = command.replace("\\\n", " ").replace("--ro-bind /run/arrayd", f"--ro-bind {environment['HOME']}")
    words = shlex.split(command)
    assert words[-2:] == ["python3", "untrusted.py"]
    more = [word for folder in folders(tmp_path) for word in ("--ro-bind", folder, folder)]
    return [*words[:-2], *more, "--setenv", "PYTHONPATH", PATH, *program]


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
def test_in_bubblewrap(environment, tmp_path):
    if subprocess.run(in_bubblewrap(environment, tmp_path, ["true"]), stdin=subprocess.DEVNULL).returncode:
        pytest.skip("bubblewrap may make no namespaces here")
    printed = run(*in_bubblewrap(environment, tmp_path, [os.path.realpath(sys.executable), tmp_path / "untrusted.py"]))
    assert printed.split() == ["True", "False", "True", "0", "True"]


def in_gvisor(environment, tmp_path, program):
    """A bundle with the folders and nothing else, and the command that runs it."""
    mounts = {"/usr": "/usr", "/lib": "/usr/lib", "/lib64": "/usr/lib64", "/run/arrayd": environment["HOME"]}
    mounts |= {folder: folder for folder in folders(tmp_path)}
    (tmp_path / "bundle/root").mkdir(parents=True, exist_ok=True)
    variables = {"PATH": "/usr/bin", "ARRAYD_URL": "unix:/run/arrayd/arrayd.sock",
                 "PYTHONPATH": PATH}
    (tmp_path / "bundle/config.json").write_text(json.dumps({
        "ociVersion": "1.0.0", "root": {"path": str(tmp_path / "bundle/root"), "readonly": True}, "hostname": "sandbox",
        "process": {"user": {"uid": 0, "gid": 0}, "cwd": "/", "args": list(map(str, program)),
                    "env": [f"{name}={value}" for name, value in variables.items()]},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}] + [
            {"destination": inside, "type": "bind", "source": outside, "options": ["ro", "rbind"]}
            for inside, outside in mounts.items()],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]}}))
    help_ = subprocess.run(["runsc", "flags"], capture_output=True, text=True)
    sockets = "--host-uds=open" if "-host-uds" in (help_.stdout + help_.stderr).replace("fsgofer-host-uds", "") else "--fsgofer-host-uds"
    return ["runsc", f"--root={tmp_path}/state", "--platform=ptrace", "--network=none", "--ignore-cgroups", sockets, "run",
            f"--bundle={tmp_path}/bundle", f"recipe-{os.getpid()}"]


@pytest.mark.skipif(not shutil.which("runsc"), reason="gVisor is not installed")
def test_in_gvisor(environment, tmp_path):
    """No descriptor passes its sockets: large arrays go through the socket, and a fork's child begins anew."""
    done = subprocess.run(in_gvisor(environment, tmp_path, ["/usr/bin/true"]), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=COMMAND)
    if done.returncode:
        pytest.skip(f"gVisor starts nothing here: {done.stderr[-200:]}")
    printed = run(*in_gvisor(environment, tmp_path, [os.path.realpath(sys.executable), tmp_path / "untrusted.py"]))
    assert printed.split() == ["True", "False", "True", "0", "True"]
