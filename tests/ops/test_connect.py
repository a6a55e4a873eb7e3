"""Connecting over TCP and TLS: what the client shows, what it checks, and what it keeps to itself."""
import gc
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

import arrayd as ad

pytest.importorskip("trustme")
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "fault"))
from certificates import Authority  # noqa: E402

from conftest import BUILD, PATIENCE, port_of, start_server  # noqa: E402


class Remote:
    """A server with tcp and tls, an authority, and a token."""

    def __init__(self, folder):
        self.folder, self.authority = folder, Authority(folder)
        self.other = Authority(folder, "other")
        out = subprocess.run([BUILD / "bin/arrayd", "--make-token", "alice"], capture_output=True, text=True, check=True)
        self.token, line = re.fullmatch(r"token  (\S+)\nline   (.+)\n", out.stdout).groups()
        self.tokens = folder / "tokens"
        self.tokens.write_text(line + "\n")
        self.tokens.chmod(0o600)
        self.processes = []
        self.port = self.start(self.authority.issue("127.0.0.1", "::1", "localhost"))

    def start(self, certificate, *options):
        folder = self.folder / f"server{len(self.processes)}"
        folder.mkdir()
        process, _ = start_server(str(folder), "--tcp=127.0.0.1:0", "--tls=127.0.0.1:0", f"--tokens={self.tokens}",
                                  f"--tls-cert={certificate}", f"--tls-ca={self.authority.ca}", *options)
        self.processes.append(process)
        return {way: port_of(folder, way) for way in ("tcp", "tls")}

    def url(self, way="tls", host="127.0.0.1", port=None):
        return f"{way}:{host}:{(port or self.port)[way]}"

    def log(self, number=0):
        return (self.folder / f"server{number}" / "log").read_text()


@pytest.fixture(scope="module")
def remote(tmp_path_factory):
    it = Remote(tmp_path_factory.mktemp("remote"))
    yield it
    for process in it.processes:
        process.terminate()
        process.wait(PATIENCE)


@pytest.fixture(autouse=True)
def back_to_the_usual_server(monkeypatch, tmp_path):
    """Nothing of this machine's own configuration counts, and the next test has its usual server."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    for name in ("TOKEN", "TOKEN_FILE", "CA", "CERT", "KEY"):
        monkeypatch.delenv("ARRAYD_" + name, raising=False)
    yield
    ad.connect(os.environ["ARRAYD_URL"])


def works():
    return float(ad.arange(1000.0).sum()) == 499500


@pytest.mark.parametrize("way", ["tcp", "tls"])
def test_ways_to_give_a_token(remote, way, monkeypatch, tmp_path):
    url = remote.url(way)
    monkeypatch.setenv("ARRAYD_CA", remote.authority.ca)
    with pytest.raises(PermissionError, match="was shown none"):
        ad.connect(url)
    ad.connect(url, token=remote.token)
    assert works()
    own = tmp_path / "config" / "arrayd" / "token"
    own.parent.mkdir(parents=True)
    own.write_text(remote.token + "\n")
    own.chmod(0o644)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with pytest.raises(PermissionError, match="open to others .mode 0644, owner .*: chmod 600"):
        ad.connect(url)
    own.chmod(0o600)
    ad.connect(url)
    assert works()
    named = tmp_path / "named"
    named.write_text("wrong" * 8)
    with pytest.raises(PermissionError, match="token file .*named is open to others .mode 0644, owner .*: chmod 600"):
        monkeypatch.setenv("ARRAYD_TOKEN_FILE", str(named))
        ad.connect(url)
    named.chmod(0o600)
    monkeypatch.setenv("ARRAYD_TOKEN_FILE", str(named))  # goes before the user's own
    with pytest.raises(PermissionError, match="does not know the token"):
        ad.connect(url)
    monkeypatch.setenv("ARRAYD_TOKEN", remote.token)  # goes before both
    ad.connect(url)
    assert works()
    with pytest.raises(PermissionError, match="does not know the token"):
        ad.connect(url, token="wrong" * 8)


def test_what_is_no_token(remote, monkeypatch, tmp_path):
    for token in ("", "two words", "x" * 300, "ä" * 20):
        with pytest.raises(ValueError, match="not a token") as error:
            ad.connect(remote.url("tcp"), token=token)
        assert not token or token not in str(error.value)
    with pytest.raises(TypeError, match="token must be a str"):
        ad.connect(remote.url("tcp"), token=5)
    monkeypatch.setenv("ARRAYD_TOKEN_FILE", str(tmp_path / "missing"))
    with pytest.raises(OSError, match="missing"):
        ad.connect(remote.url("tcp"))
    with pytest.raises(ValueError, match="does not belong into it") as error:
        ad.connect(f"tls:{remote.token}@127.0.0.1:1")
    assert remote.token not in str(error.value)


def test_the_token_is_shown_nowhere(remote):
    code = f"""
import arrayd as ad, os, sys
token = os.environ["ARRAYD_TOKEN"]
ad.connect("{remote.url()}")
print(ad.session_info(), ad.arange(3))
ad.show_config()
for wrong in (token + "x", token + " x"):
    try:
        ad.connect("{remote.url()}", token=wrong)
    except Exception as error:
        print(repr(error))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ARRAYD_TOKEN": remote.token,
                               "ARRAYD_CA": remote.authority.ca, "AD_TRACE": "1"})
    assert done.returncode == 0, done.stderr
    assert "-> hello" in done.stderr and "PermissionError" in done.stdout and "ValueError" in done.stdout
    assert remote.token not in done.stdout + done.stderr + remote.log()


def test_a_token_does_not_go_beyond_this_machine_in_clear(remote):
    """The address is not loopback, and nobody but this test listens there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))  # sends nothing, but shows which address would
            address = s.getsockname()[0]
        except OSError:
            address = "127.0.0.1"
    if address.startswith("127."):
        pytest.skip("this machine has no other address")
    with socket.create_server((address, 0)) as listener:
        heard = []

        def listen():
            with listener.accept()[0] as s:
                heard.append(s.recv(1000))

        thread = threading.Thread(target=listen)
        thread.start()
        with pytest.raises(PermissionError, match="use tls:"):
            ad.connect(f"tcp:{address}:{listener.getsockname()[1]}", token=remote.token)
        thread.join()
        assert heard == [b""]


def refused(match, remote, ca=None, **more):
    with pytest.raises(ad.TLSError, match=match):
        ad.connect(more.pop("url", None) or remote.url(), token=remote.token, ca=ca or remote.authority.ca, **more)


def test_the_servers_certificate_is_checked(remote):
    ad.connect(remote.url(), token=remote.token, ca=pathlib.Path(remote.authority.ca))
    assert works()
    ad.connect(remote.url(host="localhost"), token=remote.token, ca=remote.authority.ca)
    assert works()
    refused("the certificate is refused", remote, ca=remote.other.ca)
    with pytest.raises(ad.TLSError, match="the certificate is refused: .*; use the url that `arrayctl invite` prints .*ARRAYD_CA"):
        ad.connect(remote.url(), token=remote.token)
    expired = remote.start(remote.authority.issue("127.0.0.1", expired=True))
    refused("expired", remote, url=remote.url(port=expired))
    named = remote.start(remote.authority.issue("example.org", "192.0.2.1", common_name="127.0.0.1"))
    refused("IP address mismatch", remote, url=remote.url(port=named))
    refused("[Hh]ostname mismatch", remote, url=remote.url(host="localhost", port=named))
    for number in range(3):
        assert "principal=token:alice" not in remote.log(number) or number == 0  # a token went to the right one only


def test_files_that_cannot_be_used(remote, tmp_path):
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    refused("certificates of .*missing", remote, ca=str(tmp_path / "missing"))
    refused("certificates of .*empty", remote, ca=str(empty))
    refused("certificate .*missing", remote, cert=str(tmp_path / "missing"))
    wrong = tmp_path / "wrong.pem"
    wrong.write_bytes(pathlib.Path(remote.authority.ca).read_bytes())
    with pytest.raises(PermissionError, match="key .*wrong.pem is open to others .mode 0644, owner .*: chmod 600"):
        ad.connect(remote.url(), ca=remote.authority.ca, cert=remote.authority.issue("x.example.org"), key=str(wrong))
    wrong.chmod(0o600)
    refused("key .*wrong.pem", remote, cert=remote.authority.issue("x.example.org"), key=str(wrong))


def test_certificates_in_place_of_tokens(remote, monkeypatch, tmp_path):
    certificate = remote.authority.issue("x.example.org", common_name="notebook")
    ad.connect(remote.url(), ca=remote.authority.ca, cert=certificate)
    assert works() and "principal=cert:notebook" in remote.log()
    monkeypatch.setenv("ARRAYD_CERT", certificate)
    monkeypatch.setenv("ARRAYD_CA", remote.authority.ca)
    ad.connect(remote.url())
    assert works()
    own = tmp_path / "arrayd" / "token"  # for some other server
    own.parent.mkdir()
    own.write_text("wrong" * 8)
    own.chmod(0o600)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ad.connect(remote.url())
    assert works()
    with pytest.raises(PermissionError, match="does not know the token"):  # what is asked for counts
        ad.connect(remote.url(), token="wrong" * 8)
    with pytest.raises(PermissionError, match="does not know the token"):  # no certificate is shown there
        ad.connect(remote.url("tcp"))
    wrong = remote.other.issue("x.example.org", common_name="mallory")
    with pytest.raises((ad.TLSError, ConnectionError)):
        ad.connect(remote.url(), cert=wrong)


def test_the_wrong_kind_of_server(remote):
    with pytest.raises((ad.TLSError, ConnectionError)):
        ad.connect(f"tls:127.0.0.1:{remote.port['tcp']}", token=remote.token, ca=remote.authority.ca)
    with pytest.raises(ConnectionError):
        ad.connect(f"tcp:127.0.0.1:{remote.port['tls']}", token=remote.token)


def test_without_openssl(remote, tmp_path):
    (tmp_path / "libssl.so.3").write_text("no library")
    code = f"""
import arrayd as ad
ad.connect("{remote.url('tcp')}", token="{remote.token}")
assert float(ad.ones(5).sum()) == 5
try:
    ad.connect("{remote.url()}", token="{remote.token}")
except ad.TLSError as error:
    print(error)
assert float(ad.ones(5).sum()) == 5
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LD_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert "TLS needs OpenSSL 3, which cannot be loaded" in done.stdout


def test_large_arrays(remote):
    ad.connect(remote.url(), token=remote.token, ca=remote.authority.ca)
    host = np.random.default_rng(1).integers(0, 256, 100_000_000, np.uint8)
    a = ad.asarray(host)
    assert np.array_equal(a.get(), host)
    assert int(a.sum(dtype=np.int64)) == int(host.sum(dtype=np.int64))


def test_threads_read_and_write_at_once(remote):
    ad.connect(remote.url(), token=remote.token, ca=remote.authority.ca)
    wrong = []

    def compute(seed):
        rng = np.random.default_rng(seed)
        for _ in range(10):
            host = rng.random(int(rng.integers(1, 300_000)))
            a = ad.asarray(host)
            b = a * 2 + 1
            if not np.array_equal(b.get(), host * 2 + 1) or not np.array_equal(a[::-1].get(), host[::-1]):
                wrong.append(seed)

    threads = [threading.Thread(target=compute, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_server_goes(remote):
    port = remote.start(remote.authority.issue("127.0.0.1"), "--resume-time=2")  # for so long clients hope
    ad.connect(remote.url(port=port), token=remote.token, ca=remote.authority.ca)
    assert works()
    x = ad.ones(10)
    process = remote.processes[-1]
    process.kill()
    process.wait()
    with pytest.raises(ConnectionError):
        for _ in range(1000):
            float(x.sum())


def test_a_fork(remote):
    """The child has no part in the connection, and does it no harm by letting go of it."""
    ad.connect(remote.url(), token=remote.token, ca=remote.authority.ca)
    a = ad.arange(1000.0)
    ad.sync()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            try:
                a.get()
            except ConnectionError as error:
                status = 7 if "fork" in str(error) else 2
            ad.ones(3).sum()  # its own connection takes the place of the parent's
            del a  # the array was the last to use that session
            gc.collect()
        except BaseException:
            status = 3
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert float(a.sum()) == 499500 and works()


ENDED = """
import subprocess, sys
import arrayd as ad

a = ad.ones(3)
ad.sync()
subprocess.run([sys.argv[1], "kill", str(ad.session_info()["session"]), "no", "more", "--socket=" + sys.argv[2]], check=True)

def tell(compute):
    try:
        print(compute())
    except Exception as error:
        print(type(error).__name__, error)

tell(lambda: a.sum().item())
tell(lambda: ad.ones(3).sum().item())
ad.connect()
b = ad.ones(3)
tell(lambda: b.sum().item())
tell(lambda: (a + b).sum().item())
"""


def test_who_was_ended_is_told_what_to_do(own_server):
    """Arrays of the session that is over may meet those of the next one, which gives that error as well."""
    _, url = own_server()
    done = subprocess.run([sys.executable, "-c", ENDED, BUILD / "bin/arrayctl", url.removeprefix("unix:")], capture_output=True,
                          text=True, timeout=PATIENCE, env={**os.environ, "ARRAYD_URL": url})
    lost = ("ConnectionError the server closed the connection: ended by an administrator: no more; the session and its arrays "
            "are lost: connect again for a new one")
    assert done.stdout.splitlines()[1:] == [lost, lost, "3.0", lost], done
