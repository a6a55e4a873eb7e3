"""Files of deploy/ for those who run a server: units, configuration, images, manifests."""
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request

import kubernetes_validate
import pytest
import yaml

from commands import COMMAND

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ARRAYD_BUILD", TOP / "build" / "release"))
DEPLOY = TOP / "deploy"
sys.path.append(str(DEPLOY))
import stages  # noqa: E402

needs = {name: pytest.mark.skipif(not shutil.which(name), reason=f"there is no {name} here")
         for name in ("systemd-analyze", "systemd-sysusers", "systemd-tmpfiles", "debootstrap")}
PYTHON_SLIM = 118_060_000  # bytes of python:3.13-slim-trixie, as its publishers list it (docker-library/repo-info)


def run(*command, **options):
    """Return both outputs of a command that must succeed."""
    done = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, **{"timeout": COMMAND, **options})
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}"
    return done.stdout


@contextlib.contextmanager
def serving(*options):
    """A server of the CPU backend with these options, which is ready, and which ends well."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ARRAYD_")}
    process = subprocess.Popen([BUILD / "bin/arrayd", *options, "--backend=cpu", "--kernels-cache=none"],
                               stderr=subprocess.PIPE, text=True, env=environment)
    try:
        line = next((line for line in process.stderr if "event=ready" in line or "level=error" in line), "")
        assert "event=ready" in line, line
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=COMMAND)
    assert process.returncode == 0


# ---- systemd ----

@pytest.fixture(scope="module")
def units(tmp_path_factory):
    """A folder with the units as they are installed, for the programs of this build."""
    folder = tmp_path_factory.mktemp("units")
    text = (DEPLOY / "arrayd.service").read_text().replace("@SYSCONFDIR@", "/etc").replace("@PREFIX@", str(BUILD))
    (folder / "arrayd.service").write_text(text)
    shutil.copy(DEPLOY / "arrayd.socket", folder)
    return folder


@needs["systemd-analyze"]
def test_units_are_well_formed(units):
    out = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", units / "arrayd.service", units / "arrayd.socket")
    assert not [line for line in out.splitlines() if "arrayd" in line], out


@needs["systemd-analyze"]
def test_exposure(units):
    """The unit's exposure is at most 2.0 of 10; systemd-analyze fails above the threshold, which it takes in tenths."""
    out = run("systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=20", units / "arrayd.service")
    assert float(re.search(r"Overall exposure level.*: ([\d.]+)", out)[1]) <= 2.0


def test_unit_leaves_users_apart(units):
    """The unit has no user namespace of its own: there the server would see all users of the socket as one."""
    unit = (units / "arrayd.service").read_text()
    assert not re.search(r"^(PrivateUsers|DynamicUser)=", unit, re.M)
    assert re.search(r"^Requires=arrayd\.socket$", unit, re.M)


@needs["systemd-sysusers"]
@needs["systemd-tmpfiles"]
def test_user_and_folder(tmp_path):
    (tmp_path / "etc").mkdir()
    run("systemd-sysusers", f"--root={tmp_path}", DEPLOY / "arrayd.sysusers")
    assert re.search(r"^arrayd:x:\d+:\d+:Array server:/run/arrayd:", (tmp_path / "etc/passwd").read_text(), re.M)
    if os.geteuid() == 0:
        run("systemd-tmpfiles", "--create", f"--root={tmp_path}", DEPLOY / "arrayd.tmpfiles")
        assert (tmp_path / "run/arrayd").stat().st_mode & 0o7777 == 0o755


def test_installed_configuration_is_the_defaults(tmp_path):
    """The file that is installed, with every option taken out of its comment, starts a server."""
    version = re.search(r"^VERSION := (\S+)$", (TOP / "Makefile").read_text(), re.M)[1]
    run(sys.executable, TOP / "docs/generate.py", tmp_path, version)
    text = (tmp_path / "arrayd.conf").read_text()
    options = re.findall(r'^AD_OPTION\("([^"]+)"', (TOP / "protocol/option.def").read_text(), re.M)
    assert re.findall(r"^#([a-z-]+) =", text, re.M) == options
    assert not re.search(r"^[^#\n]", text, re.M)
    (tmp_path / "all.conf").write_text(re.sub(r"^#([a-z-]+ =)", r"\1", text, flags=re.M))
    with serving(f"--config={tmp_path / 'all.conf'}", f"--socket={tmp_path / 's'}"):
        pass


# ---- images ----

@pytest.fixture(scope="module")
def dockerfile():
    return stages.parse((TOP / "Dockerfile").read_text())


def test_dockerfile(dockerfile):
    """The files, stages and goals of make that the Dockerfile names are there, and its stages are those that others
    name."""
    given, steps = dockerfile
    assert list(steps) == ["build", "packages", "trimmed", "client", "server"] and given == {"CUDA": "13.0"}
    assert list(steps)[-1] == "server"  # Docker builds the last step if none is named
    for base, commands in steps.values():
        assert base in stages.BASES
        for word, rest in commands:
            words = shlex.split(rest) if word == "COPY" else []
            if words and not words[0].startswith("--"):
                assert all((TOP / source).exists() for source in words[:-1]), rest
            assert all(re.match(r"--from=(build|packages|trimmed)$", each) for each in words if each.startswith("--"))
            for option in re.findall(r'"--([a-z-]+)=', rest):
                assert option == "config" or f'AD_OPTION("{option}"' in (TOP / "protocol/option.def").read_text()


def test_images_say_what_they_are_and_whether_they_are_well(dockerfile, tmp_path):
    """Images have labels. The health check of the server succeeds beside a server that is well, and fails without one."""
    for name in ("client", "server"):
        labels = " ".join(rest for word, rest in dockerfile[1][name][1] if word == "LABEL")
        assert set(re.findall(r"org\.opencontainers\.image\.(\w+)=\"[^\"]+\"", labels)) == {"title", "description", "licenses"}
    (options, check), = (rest.split("CMD ", 1) for word, rest in dockerfile[1]["server"][1] if word == "HEALTHCHECK")
    assert re.findall(r"--(\w[\w-]*)=", options) == ["interval", "timeout", "start-period", "retries"]
    path = tmp_path / "arrayd.sock"
    command = [word.replace("/run/arrayd/arrayd.sock", str(path)) for word in json.loads(check)]
    command[0] = BUILD / "bin" / command[0]
    assert subprocess.run(command, capture_output=True, timeout=COMMAND).returncode != 0
    with serving(f"--socket={path}"):
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND)
        assert done.returncode == 0 and done.stdout.endswith("healthy\n"), done


def test_neither_image_has_what_the_other_is_for(dockerfile):
    text = {name: " ".join(rest for _, rest in commands) for name, (_, commands) in dockerfile[1].items()}
    assert not any("cuda" in text[name].lower() for name in ("client", "trimmed", "packages"))
    assert "build.py /wheel client" in text["build"]  # the client's wheel, which has no programs
    assert "python" not in text["server"]


def test_stages_are_built(tmp_path, monkeypatch):
    """The builder of stages does what the instructions say, on roots that are empty."""
    roots, ran = {}, []
    monkeypatch.setattr(stages, "base_root", lambda image, folder: _empty(tmp_path / "empty"))
    monkeypatch.setattr(stages.Stage, "run", lambda self, command: ran.append((self.root.name, self.folder, command)))
    text = ("ARG A=1\nFROM debian:12 AS one\nARG A\nWORKDIR /src\nCOPY LICENSE deploy/cuda.sh deploy/\n# no\nRUN echo \\\n"
            "    $A\nENV X=1 Y=\"2 3\"\nFROM debian:12-slim AS two\nCOPY --from=one /src/ /there/\nUSER me\n")
    given, parsed = stages.parse(text)
    stages.build("two", parsed, given, tmp_path, roots)
    assert (tmp_path / "two/there/deploy/LICENSE").read_text() == (TOP / "LICENSE").read_text()
    assert [(name, folder, command.split()) for name, folder, command in ran] == [("one", "/src", ["echo", "$A"])]
    start = json.loads((tmp_path / "one.json").read_text())
    assert start["ENV"]["Y"] == "2 3" and json.loads((tmp_path / "two.json").read_text())["USER"] == "me"


def _empty(folder):
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def images(tmp_path):
    """A folder for roots, which are too large to be kept."""
    yield tmp_path
    shutil.rmtree(tmp_path)


# Services do this in the image besides computing. Their own test is tests/fault/test_containers.py.
IN_CLIENT = """
python -c 'import numpy as np, numpy.testing; a = np.ones((3, 3)) + np.eye(3); np.testing.assert_allclose(np.linalg.inv(a) @ a, np.eye(3), atol=1e-12)'
python -c 'import arrayd, arrayd.testing, arrayd.cupyx, ssl, zoneinfo; assert ssl.create_default_context().get_ca_certs()'
test "$ARRAYD_URL" = unix:/run/arrayd/arrayd.sock && ldconfig && useradd somebody && dpkg --status libc6 >/dev/null
pip install --quiet --root-user-action=ignore --target=/tmp/more six && PYTHONPATH=/tmp/more python -c 'import six'
"""


@needs["debootstrap"]
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may enter a root")
@pytest.mark.skipif(BUILD.name != "release", reason="the wheel is of the release")
@pytest.mark.timeout(1200)
def test_client_image(dockerfile, images):
    """Built with this build's wheel it stays below 150 MB, and its clients do what those of test_containers do."""
    try:
        urllib.request.urlopen(f"{stages.MIRROR}/dists/trixie/Release", timeout=60).close()
    except OSError as error:
        pytest.skip(f"no mirror of Debian: {error}")
    run(sys.executable, TOP / "deploy/wheels/build.py", images / "build/wheel", "client")
    roots = {"build": images / "build"}
    stages.build("client", dockerfile[1], dockerfile[0], images, roots)
    added = stages.size(roots["client"]) - stages.size(stages.base_root(dockerfile[1]["trimmed"][0], images))
    assert 0 < PYTHON_SLIM + added < 150e6
    inside = stages.Stage(roots["client"], {})
    inside.environment.update(json.loads((images / "client.json").read_text())["ENV"])
    inside.run(IN_CLIENT)
    out = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={TOP / 'tests'}",
              TOP / "tests/fault/test_containers.py", env={**os.environ, "ARRAYD_TEST_IMAGES": str(images)}, timeout=600)
    assert re.search(r"^\d+ passed", out, re.M), out


def test_compose(dockerfile):
    """One server has the GPUs. Three services have none, and share the socket's folder alone."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = dict(compose["services"])
    server = services.pop("arrayd")
    assert len(services) == 3 and set(compose["volumes"]) == {"socket", "kernels"}
    assert server["deploy"]["resources"]["reservations"]["devices"][0]["capabilities"] == ["gpu"]
    assert set(server["build"]["args"]) <= {"CUDA", "CUDA_ARCHS"}
    known = (TOP / "protocol/option.def").read_text()
    assert all(f'AD_OPTION("{option[2:].split("=")[0]}"' in known for option in server["command"])
    assert "socket:/run/arrayd" in server["volumes"]
    for each in (server, *services.values()):
        assert each["build"]["target"] in dockerfile[1] and (DEPLOY / each["build"]["context"] / "Dockerfile").exists()
        assert each["network_mode"] == "none" and each["cap_drop"] == ["ALL"] and each["read_only"] is True
    for each in services.values():
        assert "deploy" not in each and each["image"] == "arrayd-client"
        volumes = dict(volume.split(":", 1) for volume in each["volumes"])
        assert volumes.pop("socket") == "/run/arrayd:ro" and list(volumes.values()) == ["/examples:ro"]
        assert (DEPLOY / list(volumes)[0] / pathlib.Path(each["command"][1]).name).exists()
    assert len({each["user"] for each in services.values()}) == 3


# ---- Kubernetes ----

MANIFESTS = {path.name: list(yaml.safe_load_all(path.read_text())) for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))}


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifest_follows_the_schemas(name):
    for each in MANIFESTS[name]:
        kubernetes_validate.validate(each, "1.30", strict=True)
    broken = json.loads(json.dumps(MANIFESTS[name][-1]))
    broken["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.30", strict=True)


def _pod(name, kind):
    return next(each for each in MANIFESTS[name] if each["kind"] == kind)["spec"]["template"]["spec"]


def test_manifests_share_the_socket_and_not_the_gpu(tmp_path):
    server, client = _pod("arrayd.yaml", "DaemonSet"), _pod("client.yaml", "Deployment")
    limits = server["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] >= 1
    assert "nvidia" not in json.dumps([each["resources"] for each in client["containers"]])
    folders = [{v["name"]: v["hostPath"]["path"] for v in pod["volumes"] if "hostPath" in v}["socket"] for pod in (server, client)]
    assert folders == ["/run/arrayd"] * 2
    mounts = {m["name"]: m for m in client["containers"][0]["volumeMounts"]}
    assert mounts["socket"] == {"name": "socket", "mountPath": "/run/arrayd", "readOnly": True}
    for pod in (server, client):
        context = pod["containers"][0]["securityContext"]
        assert context["runAsNonRoot"] and context["readOnlyRootFilesystem"] and context["capabilities"]["drop"] == ["ALL"]
        assert context["allowPrivilegeEscalation"] is False and "hostNetwork" not in pod and "hostPID" not in pod


def test_configuration_of_the_manifest():
    """The manifest's options are options, with values that the server takes."""
    text = next(each for each in MANIFESTS["arrayd.yaml"] if each["kind"] == "ConfigMap")["data"]["arrayd.conf"]
    arguments = [f"--{key.strip()}={value.strip()}" for key, value in
                 (line.split("=", 1) for line in text.splitlines() if line.strip() and not line.startswith("#"))]
    assert "--socket-mode=0666" in arguments
    server = _pod("arrayd.yaml", "DaemonSet")["containers"][0]
    assert server["args"]  # without any the image's would count more than the file
    run(BUILD / "bin/arrayd", *arguments, *server["args"], "--help")
