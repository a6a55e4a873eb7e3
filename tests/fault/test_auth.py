"""Access to the server: tokens, grants, and what strangers may cost."""
import contextlib
import hashlib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

import raw
from places import DENIED, LIMIT, PROTOCOL, make_token, memory_of, port_of, refusal, reload, works
from raw import Client, Closed, Failed, connect, frame, hello, wait_until
from test_exports import outcome, program


# ---- what does not start ----

@pytest.mark.parametrize("options, expected", [
    (["--tcp=127.0.0.1:0"], "option tcp: TCP connections do not tell users apart"),
    (["--tcp=0.0.0.0:0", "--tokens={tokens}"], "not a loopback address"),
    (["--tcp=0.0.0.0:0", "--tcp-open=yes"], "not a loopback address"),
    (["--tls=127.0.0.1:0", "--tokens={tokens}"], "option tls: a certificate is missing"),
    (["--tls=127.0.0.1:0", "--tls-cert={cert}"], "option tls: nobody could come in"),
    (["--tls=nowhere", "--tls-cert={cert}", "--tokens={tokens}"], "option tls: "),
    (["--tls=127.0.0.1:0", "--tls-cert={folder}/none", "--tokens={tokens}"], "certificate"),
    (["--tls=127.0.0.1:0", "--tls-cert={cert}", "--tls-key={other}", "--tokens={tokens}"], "key"),
    (["--tls=127.0.0.1:0", "--tls-cert={cert}", "--tls-ca={tokens}"], "tokens"),
    (["--tokens={folder}/none"], "option tokens: cannot open"),
    (["--tokens={folder}"], "is not a file"),
    (["--principals={tokens}"], "option principals: "),
])
def test_does_not_start(start, place, options, expected):
    other = place.authority.issue("127.0.0.1")
    names = {"tokens": place.tokens, "cert": place.certificate, "other": other, "folder": place.folder}
    server = start(*[option.format(**names) for option in options], wait=False)
    server.expected_status = 1
    assert server.wait() == 1
    assert any("cannot start" in line and expected in line for line in server.lines), server.lines


def test_a_file_that_others_may_write_is_refused(start, place):
    grants = place.folder / "principals"
    grants.write_text("")
    grants.chmod(0o622)
    server = start(*place.options("tcp"), f"--principals={grants}", wait=False)
    server.expected_status = 1
    assert server.wait() == 1
    assert server.said("its owner's alone to write")


OURS, GROUP, OTHER = 54321, 54322, 54323
# Mode, owner and group of a secret, the groups of the server, and whether it may be used. A container's secrets are
# root's, for a group that the pod is in; systemd's credentials show their access list where the group's rights stand.
SECRETS = [(0o600, OURS, OURS, [], True), (0o400, 0, 0, [], None), (0o440, 0, GROUP, [GROUP], True),
           (0o640, 0, GROUP, [GROUP], True), (0o440, 0, 0, [0], True), (0o640, OURS, GROUP, [GROUP], False),
           (0o444, 0, 0, [], False), (0o644, OURS, OURS, [], False), (0o604, 0, 0, [], False),
           (0o660, 0, GROUP, [GROUP], False), (0o640, OTHER, GROUP, [GROUP], False), (0o604, OTHER, OTHER, [], False)]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be somebody else")
@pytest.mark.parametrize("what", ["key", "tokens"])
@pytest.mark.parametrize("mode, owner, group, groups, good", SECRETS)
def test_a_secret_that_others_may_read_is_refused(start, place, what, mode, owner, group, groups, good):
    """The server's user, who is not root, reads it. None: the kernel lets nobody read it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="arrayd-secret-", dir="/tmp"))
    raw.FOLDERS.append(folder)
    os.chown(folder, OURS, OURS)
    secret = {}
    for name, text in (("key", pathlib.Path(place.certificate).read_text()), ("tokens", place.tokens.read_text())):
        (folder / "data").mkdir(exist_ok=True)
        (folder / "data" / name).write_text(text)
        (folder / name).symlink_to(f"data/{name}")  # as Kubernetes mounts them
        secret[name] = str(folder / name)
        os.chown(folder / "data" / name, *((owner, group) if name == what else (OURS, OURS)))
        os.chmod(folder / "data" / name, mode if name == what else 0o600)
    certificate = folder / "certificate"
    certificate.write_text(pathlib.Path(place.certificate).read_text())
    code = ("import os, sys; groups = eval(sys.argv[1]); os.setgroups(groups); os.setgid(int(sys.argv[2]));"
            "os.setuid(int(sys.argv[2])); os.execv(sys.argv[3], sys.argv[3:])")
    process = subprocess.Popen([sys.executable, "-c", code, repr(groups), str(OURS), raw.PROGRAM, f"--socket={folder}/s",
                                "--backend=cpu", "--kernels-cache=none", "--tls=127.0.0.1:0", f"--tokens={secret['tokens']}",
                                f"--tls-cert={certificate}", f"--tls-key={secret['key']}"],
                               stderr=subprocess.PIPE, text=True)
    raw.RUNNING.append(process)
    said = ""
    while "event=ready" not in said and (line := process.stderr.readline()):
        said += line
    process.terminate()
    assert process.wait(raw.WINDOW) == (0 if good else 1), said
    process.stderr.close()
    if good is False:
        named = f"{secret[what]} is " + ("somebody else's" if owner == OTHER else "open to others")
        assert named in said and f"mode {mode:04o}, owner " in said, said
        assert ("chown" if owner == OTHER else "chmod 600") in said


def test_a_secret_that_is_opened_while_it_serves_stays_in_use(start, place):
    server = start(*place.options("tcp"))
    place.tokens.chmod(0o644)
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: server.said("not reloaded"), "it says so")
    assert server.said("is open to others (mode 0644")
    assert works(place.client(server, "tcp"))


# ---- libcrypto ----

@pytest.mark.parametrize("length", [16, 47, 55, 56, 63, 64, 65, 119, 120, 256])
def test_what_is_kept_of_a_token_is_its_sha256(start, place, length):
    """A second implementation of SHA-256 agrees, at the lengths where blocks end."""
    token = "".join(random.Random(length).choices("abcdefghijklmnopqrstuvwxyz0123456789_-", k=length))
    place.lines["bob"] = f"bob sha256:{hashlib.sha256(token.encode()).hexdigest()}\n"
    place.write()
    server = start(*place.options("tcp"))
    assert works(Client(("127.0.0.1", port_of(server, "tcp")), token=token))


@pytest.fixture(params=["none", "another"])
def no_crypto(request, tmp_path):
    """An environment in which libcrypto cannot be loaded, or lacks what is needed; and what is said of it."""
    folder = tmp_path / "lib"
    folder.mkdir()
    library = folder / "libcrypto.so.3"
    if request.param == "none":
        library.write_text("no library")
        return {"LD_LIBRARY_PATH": str(folder)}, r"OpenSSL 3 cannot be loaded: .*libssl3"
    if not shutil.which("cc"):
        pytest.skip("there is no compiler for the library of this test")
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", library], check=True)
    return {"LD_LIBRARY_PATH": str(folder)}, r"libcrypto\.so\.3 has no function \w+"


def test_without_libcrypto_it_does_not_begin_to_compare_secrets(start, place, no_crypto):
    """Sessions that come back and tokens need it. There is a message, and no server."""
    environment, why = no_crypto
    for options in ([], ["--resume-time=0", *place.options("tcp")]):
        server = start(*options, env=environment, wait=False)
        server.expected_status = 1
        assert server.wait() == 1
        assert re.search(why + r".*resume-time = 0 and no tokens", "\n".join(server.lines)), server.lines


KERNEL = """
k = ad.RawKernel('extern "C" __global__ void twice(long long *x) { x[threadIdx.x] *= 2; }', "twice")
x = ad.arange(5)
for _ in range(2):
    k((1,), (5,), (x,))
print((x + 1).get().tolist())
"""


def test_without_libcrypto_and_what_it_compares_unix_sockets_serve(start, no_crypto, tmp_path):
    """Kernels, too, which are not kept on disk: their names would be hashes."""
    cache = tmp_path / "kernels"
    server = start("--resume-time=0", f"--kernels-cache={cache}", env=no_crypto[0])
    assert works(Client(server.path))
    assert outcome(program(KERNEL, f"unix:{server.path}")) == "[1, 5, 9, 13, 17]\n"
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_without_libcrypto_a_program_has_a_server_of_its_own(no_crypto, tmp_path):
    """The program's server says once that its session does not come back."""
    environment, why = no_crypto
    first = f"import os\nos.environ.update({environment!r}, ARRAYD_KERNELS_CACHE={str(tmp_path)!r})\n"
    process = program(first + KERNEL, "embedded:cpu")
    out, err = process.communicate(timeout=raw.WINDOW)
    assert process.returncode == 0 and out == "[1, 5, 9, 13, 17]\n", err
    assert len(re.findall(rf'level=warn .*event="sessions do not come back" why=.*{why}', err)) == 1, err


def test_starts_without_openssl_unless_tls_is_asked_for(start, place, tmp_path):
    (tmp_path / "libssl.so.3").write_text("no library")
    environment = {"LD_LIBRARY_PATH": str(tmp_path)}
    assert works(place.client(start(*place.options("tcp"), env=environment), "tcp"))
    server = start(*place.options("tls"), env=environment, wait=False)
    server.expected_status = 1
    assert server.wait() == 1
    assert server.said("TLS needs OpenSSL 3")


# ---- tokens ----

def test_made_tokens(place):
    made = [make_token("bob") for _ in range(20)]
    assert len({token for token, _ in made}) == 20
    for token, line in made:
        assert re.fullmatch(r"ad1_[A-Za-z0-9_-]{43}", token)
        assert line == f"bob sha256:{hashlib.sha256(token.encode()).hexdigest()}"
    for name in ("", "two words", "a/b", "x" * 57):
        assert subprocess.run([raw.PROGRAM, "--make-token", name], capture_output=True).returncode == 2


@pytest.mark.parametrize("way", ["tcp", "tls"])
def test_tokens(start, place, way):
    place.add("bob")
    server = start(*place.options("tcp", "tls"), "--log-level=debug", env={"AD_TRACE": "1"})
    for name in ("alice", "bob"):
        assert works(place.client(server, way, name))
        wait_until(lambda: server.said(f"principal=token:{name}"), "it is logged")
    right = place.token["alice"]
    digits = re.search("sha256:(.*)", place.lines["alice"])[1].strip()
    for token in (None, "", right[:-1], right + "x", right[:-1] + chr(ord(right[-1]) ^ 1), right.swapcase(), digits,
                  "sha256:" + digits, "Alice" * 5, "x" * 300, right + "\0", "ä" * 20, " " * 20):
        why = refusal(lambda: place.client(server, way, token))
        assert why.code == DENIED, token
        assert ("does not know the token" if token else "shown none") in why.text
        assert "ad1_" not in why.text
    assert not server.said(right) and not server.said(place.token["bob"]) and not server.said("ad1_")


def test_a_token_of_another_type_breaks_the_protocol(start, place):
    server = start(*place.options("tcp"))
    for token in (5, b"bytes", ["x"], {}):
        assert refusal(lambda: place.client(server, "tcp", None) if token is None else Client(
            place.socket(server, "tcp"), token=token)).code == PROTOCOL
    fields = raw.msgpack.packb([raw.REQUEST["hello"], 1, 1, 0, "x"])[1:]
    twice = b"\x96" + fields + b"\x82" + 2 * (raw.msgpack.packb("token") + raw.msgpack.packb(place.token["alice"]))
    client = Client(place.socket(server, "tcp"), greet=False)
    client.send(frame(twice))
    assert client.receive_message()[1] == PROTOCOL


def test_tcp_open_lets_in_who_shows_nothing(start, place):
    server = start(*place.options("tcp", "tls"), "--tcp-open=yes")
    assert works(place.client(server, "tcp", None))
    wait_until(lambda: server.said("principal=tcp:anonymous"), "it is logged")
    assert works(place.client(server, "tcp", "alice"))
    assert refusal(lambda: place.client(server, "tcp", "wrong" * 5)).code == DENIED
    assert refusal(lambda: place.client(server, "tls", None)).code == DENIED


def test_unix_sockets_need_no_token(start, place):
    server = start(*place.options("tcp"))
    assert works(Client(server.path)) and works(Client(server.path, token="anything at all"))


def test_reload(start, place):
    server = start(*place.options("tcp", "tls"))
    before = [place.client(server, "tcp"), place.client(server, "tls")]
    place.add("bob")
    assert refusal(lambda: place.client(server, "tcp", "bob")).code == DENIED
    assert reload(server)
    assert works(place.client(server, "tls", "bob"))
    place.remove("alice")
    assert reload(server)
    for way in ("tcp", "tls"):
        assert refusal(lambda: place.client(server, way, "alice")).code == DENIED
    assert all(works(client) for client in before)  # clients that are connected stay


def test_a_broken_file_changes_nothing(start, place):
    server = start(*place.options("tcp"))
    place.tokens.write_text(f"alice {place.token['alice']}\n")  # the token where its hash belongs
    assert not reload(server)
    assert server.said("tokens:1: ") and not server.said("ad1_")
    assert works(place.client(server, "tcp"))


def test_a_new_certificate_is_taken_by_reload(start, place):
    server = start(*place.options("tls"))
    client = place.client(server)
    first = client.socket.getpeercert(binary_form=True)
    os.replace(place.authority.issue("127.0.0.1"), place.certificate)
    assert reload(server)
    fresh = place.client(server)
    assert fresh.socket.getpeercert(binary_form=True) != first
    assert works(fresh) and works(client)


# ---- grants ----

def test_sessions_of_a_principal(start, place):
    place.add("bob", "sessions=2")
    server = start(*place.options("tcp", "tls"))
    both = [place.client(server, way, "bob") for way in ("tcp", "tls")]
    why = refusal(lambda: place.client(server, "tcp", "bob"))
    assert why.code == LIMIT and "token:bob has 2" in why.text
    assert works(place.client(server, "tcp", "alice"))
    both.pop().close()

    def again():
        with contextlib.suppress(Closed):
            both.append(place.client(server, "tls", "bob"))
        return len(both) == 2

    wait_until(again, "its place is free again")
    assert works(both[1])
    os.kill(both[1].stat("worker_pid"), signal.SIGKILL)  # with the worker all of them go
    wait_until(lambda: server.said("worker exited"), "the worker is gone")
    fresh = [place.client(server, "tcp", "bob") for _ in range(2)]
    assert works(fresh[0]) and refusal(lambda: place.client(server, "tcp", "bob")).code == LIMIT


def test_memory_of_a_principal(start, place):
    place.add("bob", "memory=8M")
    server = start(*place.options("tcp"))
    first, second = place.client(server, "tcp", "bob"), place.client(server, "tcp", "bob")
    x = first.put(np.ones(700_000))
    assert first.get(x).sum() == 700_000
    y = second.put(np.ones(700_000))
    with pytest.raises(Failed) as failed:
        second.get(y)
    assert failed.value.error == "memory" and "8.0 MiB" in failed.value.text and "token:bob" in failed.value.text
    # A session cannot raise the limit by what it asks for itself. The client is told the lower of the two.
    assert second.reply(second.ask("pool", 0, 2, 1 << 40))[0][3] == 8 << 20
    assert second.reply(second.ask("pool", 0, 2, 1 << 20))[0][3] == 1 << 20
    second.reply(second.ask("pool", 0, 2, 0))
    first.free(x)
    first.sync()
    assert second.get(second.put(np.ones(700_000))).sum() == 700_000
    assert works(place.client(server, "tcp", "alice"))


def test_devices_of_a_principal(start, place):
    place.add("bob", "devices=1,2")
    server = start(*place.options("tcp"))
    client = place.client(server, "tcp", "bob")
    with pytest.raises(Failed) as failed:
        client.get(client.put(np.ones(4)))
    assert failed.value.error == "denied" and "token:bob may not use device 0" in failed.value.text


def test_kernels_of_a_principal(start, place):
    """A line of the file says who may run kernels. Where those are built in, welcome says so."""
    place.add("bob", "kernels=yes")
    server = start(*place.options("tcp"))

    def features(name):
        client = Client(place.socket(server, "tcp"), greet=False)
        client.send(frame(raw.message("hello", 1, 1, 1, "raw", {"token": place.token[name]})))
        return client.receive_message()[2]

    assert features("alice") == 0
    assert features("bob") == 1


def test_users_and_groups(start, place):
    principals = place.folder / "principals"
    uid, gid = os.getuid(), os.getgid()

    def told(text):
        principals.write_text(text)
        assert reload(server)
        return Client(server.path)

    principals.write_text("")
    server = start(f"--principals={principals}")
    first = Client(server.path)
    why = refusal(lambda: told(f"uid:{uid} connect=no\ngid:{gid} connect=yes\n"))
    assert why.code == DENIED and f"uid:{uid} may not connect" in why.text
    assert refusal(lambda: told("uid:* connect=no\n")).code == DENIED
    assert refusal(lambda: told(f"gid:{gid} connect=no\nuid:* connect=yes\n")).code == DENIED
    assert works(told(f"uid:{uid} sessions=9\ngid:{gid} connect=no\nuid:* connect=no\n"))
    assert works(told(f"uid:{uid + 1} connect=no\ngid:{gid + 1} connect=no\n"))
    assert works(first)


# ---- strangers ----

@pytest.mark.parametrize("way", ["tcp", "tls"])
def test_a_flood_of_half_open_connections(start, place, way):
    server = start(*place.options("tcp", "tls"), "--handshakes=32", "--handshakes-each=16", "--hello-timeout=3")
    inside = place.client(server, way)
    before = raw.descriptors(server.pid)
    address, held = ("127.0.0.1", port_of(server, way)), []
    try:
        for _ in range(300):
            held.append(connect(address))
        assert works(inside)
        for _ in range(5):
            assert works(place.client(server, way))
        wait_until(lambda: raw.descriptors(server.pid) <= before + 3 * 16 + 10, "there are no more than the limit")
        wait_until(lambda: server.said("too many have not said hello"), "it is logged")
        wait_until(lambda: raw.descriptors(server.pid) <= before + 10, "the rest is dropped in time")
    finally:
        for s in held:
            s.close()
    assert works(place.client(server, way))


def test_one_address_does_not_displace_another(start, place):
    server = start(*place.options("tcp"), "--handshakes=40", "--handshakes-each=8", "--hello-timeout=10")
    first = place.socket(server, "tcp")
    flood = [place.socket(server, "tcp", source=("127.0.0.2", 0)) for _ in range(60)]
    wait_until(lambda: sum("too many" in line and "from=tcp:127.0.0.2" in line for line in server.lines) >= 52,
               "the address displaces its own")
    assert works(Client(first, token=place.token["alice"]))
    for s in flood:
        s.close()


def lasts(s, data, pause):
    """Seconds until the server closes a connection on which the data go byte by byte, more than there are."""
    begin = time.monotonic()
    s.settimeout(pause)
    for i in range(1000):
        try:
            s.send(data[i:i + 1])
            while s.recv(4096):
                pass
            break
        except (socket.timeout, ssl.SSLWantReadError):
            continue
        except OSError:
            break
    else:
        raise AssertionError("the server has not closed it")
    return time.monotonic() - begin


@pytest.mark.parametrize("stage", ["tcp", "before tls", "after tls"])
def test_a_byte_at_a_time(start, place, stage):
    server = start(*place.options("tcp", "tls"), "--hello-timeout=1")
    if stage == "before tls":
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        begun = place.authority.context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with contextlib.suppress(ssl.SSLWantReadError):
            begun.do_handshake()
        s, data = connect(("127.0.0.1", port_of(server, "tls"))), outgoing.read()
    else:
        s = place.socket(server, "tcp" if stage == "tcp" else "tls")
        data = hello(client="x" * 1000, token=place.token["alice"])
    with s:
        assert lasts(s, data, 0.05) > 0.5
    wait_until(lambda: server.said("hello-timeout"), "it is logged")


@pytest.mark.parametrize("way", ["tcp", "tls"])
def test_how_much_a_stranger_may_send(start, place, way):
    server = start(*place.options("tcp", "tls"), "--hello-timeout=2")
    client = Client(place.socket(server, way), greet=False)
    client.send(struct.pack("<IIQ", 65537, 0, 0))
    assert client.receive_message()[1] == PROTOCOL
    # A hello of the greatest size that never ends: no more than that is read, and it ends in time.
    before = memory_of(server.pid)
    s = place.socket(server, way)
    sent, until = 0, time.monotonic() + raw.WINDOW  # what has been refused is read away for a while, as fast as it comes
    with pytest.raises(OSError):
        s.sendall(struct.pack("<IIQ", 65536, 0, 0) + bytes(65535))
        while time.monotonic() < until:  # what the other side has closed is seen at the next but one byte
            sent += s.send(b"\0") if sent == 0 else s.send(bytes(65536))
    assert memory_of(server.pid) - before < 8 << 20
    assert works(place.client(server, way))


def test_strangers_do_not_fill_the_log(start, place):
    server = start(*place.options("tcp"))
    address = ("127.0.0.1", port_of(server, "tcp"))

    def refused():
        return sum("event=\"client refused\"" in line for line in server.lines)

    def more():
        with connect(address) as s:
            s.sendall(b"x" * 16)
            s.recv(1000)
        return server.said("event=\"more clients refused\"")

    begin = time.monotonic()
    wait_until(more, "the rest is counted")
    assert refused() <= 100 * (time.monotonic() - begin + 1)
    assert works(place.client(server, "tcp"))


def test_little_is_said_to_strangers(start, place):
    """Before somebody is let in, what is sent is one bye of at most a KiB."""
    server = start(*place.options("tcp"))
    for data in (hello(), hello(token="x" * 60000), frame(b"\xc1" * 65536), hello(client="y" * 60000), b"\0" * 16):
        with place.socket(server, "tcp") as s:
            s.sendall(data)
            said = b""
            with contextlib.suppress(ConnectionError):
                while part := s.recv(65536):
                    said += part
            assert 16 < len(said) <= 1024


# ---- addresses ----

def port_of_v6(server, way):
    ready = next(line for line in server.lines if "event=ready" in line)
    return int(re.search(rf"\b{way}:\[::1?\]:(\d+)", ready)[1])


@pytest.mark.skipif(not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"), reason="there is no IPv6 here")
def test_addresses_of_ipv6(start, place):
    """An IPv6 client is its /64 network; one that comes by IPv4 to an IPv6 socket is its IPv4 address."""
    server = start("--tcp=[::1]:0", "--tls=[::]:0", f"--tls-cert={place.certificate}", f"--tokens={place.tokens}")
    for family, way, host, expected in ((socket.AF_INET6, "tcp", "::1", "tcp:::/64"), (socket.AF_INET6, "tls", "::1", "tls:::/64"),
                                        (socket.AF_INET, "tls", "127.0.0.1", "tls:127.0.0.1")):
        with socket.socket(family) as s:
            s.settimeout(raw.WINDOW)
            s.connect((host, port_of_v6(server, way)))
            s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            while s.recv(4096):
                pass
        wait_until(lambda expected=expected: server.said(f"from={expected} "), "it is logged")
