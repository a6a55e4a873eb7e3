"""Invitations: one url by which somebody comes in, and what it must not be good for."""
import datetime
import json
import os
import re
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time

import pytest

import raw
from certificates import Authority
from places import DENIED, port_of, refusal, works
from raw import Client, Closed
from observing import BAD, USAGE, ctl

COMPUTE = """
import sys, arrayd as ad
ad.connect(sys.argv[1])
print(ad.arange(5).sum().item(), ad.session_info()["url"])
"""
URL = re.compile(r"tls://(ad1_[\w-]{43})@([^@#]+):(\d+)#sha256:([0-9a-f]{64})\n")


@pytest.fixture
def inviting(start, tmp_path, monkeypatch):
    """A server that has made its own certificate and file of tokens."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    return start("--tls=127.0.0.1:0", "--self-signed=yes")


def invite(server, name="bob", *options):
    return ctl(server, "invite", name, *options).strip()


def compute(url):
    """Return what a program of the package prints or raises; its environment has no other way in."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("ARRAYD")}
    done = subprocess.run([sys.executable, "-c", COMPUTE, url], capture_output=True, text=True, timeout=raw.WINDOW,
                          env={**env, "PYTHONPATH": os.pathsep.join([str(raw.PACKAGE), *sys.path])})
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def parts(url):
    token, host, port, pin = URL.fullmatch(url + "\n").groups()
    return token, int(port), pin


def encrypted(server):
    """A connection with TLS to the server, whoever that is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(raw.connect(("127.0.0.1", port_of(server, "tls"))))


def state(tmp_path, name):
    return tmp_path / "state" / "arrayd" / name


# ---- what it is for ----

def test_one_url_is_all_that_it_takes(inviting, tmp_path):
    url = invite(inviting)
    port = port_of(inviting, "tls")
    assert compute(url) == f"10 tls:127.0.0.1:{port}", "the url that programs see has no token"
    assert parts(url)[1] == port


def test_a_colleague_computes_within_a_minute(inviting, tmp_path, record_property):
    """From the operator's command to the first result of somebody who has the url and the package, and nothing else."""
    begin = time.monotonic()
    url = invite(inviting, "colleague", "--memory", "1GiB", "--days", "30")
    done = subprocess.run([sys.executable, "-c", "import sys, arrayd as ad; ad.connect(sys.argv[1]); "
                           "x = ad.random.random((200, 200)); print(float((x @ ad.linalg.inv(x)).trace()))", url],
                          capture_output=True, text=True, timeout=60, cwd=tmp_path, env={
                              "PATH": os.environ["PATH"], "HOME": str(tmp_path),
                              "PYTHONPATH": os.pathsep.join([str(raw.PACKAGE), *sys.path])})
    seconds = time.monotonic() - begin
    assert done.returncode == 0 and abs(float(done.stdout) - 200) < 1e-6, done.stderr
    record_property("seconds", seconds)
    print(f"a colleague has computed {seconds:.1f} s after the invitation")
    assert seconds < 60


def test_the_pin_is_that_of_the_key(inviting, tmp_path):
    """As OpenSSL's own program computes it."""
    public = subprocess.run(["openssl", "x509", "-in", state(tmp_path, "server.pem"), "-noout", "-pubkey"],
                            capture_output=True, check=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=public, capture_output=True,
                         check=True).stdout
    digest = subprocess.run(["openssl", "dgst", "-sha256"], input=der, capture_output=True, check=True).stdout.decode()
    assert digest.split()[-1] == parts(invite(inviting))[2]
    text = subprocess.run(["openssl", "x509", "-in", state(tmp_path, "server.pem"), "-noout", "-text"],
                          capture_output=True, text=True, check=True).stdout
    assert "ED25519" in text and f"DNS:{socket.gethostname()[:63]}" in text


def test_grants_and_lists(inviting):
    invite(inviting, "bob", "--memory=16MiB", "--days", "2")
    invite(inviting, "eve", "--days=0")
    shown = json.loads(ctl(inviting, "invites", "--json"))
    assert [row["name"] for row in shown] == ["bob", "eve"] and shown[0]["grants"] == f"memory={16 << 20}"
    left = datetime.datetime.fromisoformat(shown[0]["expires"]) - datetime.datetime.now(datetime.timezone.utc)
    assert datetime.timedelta(days=1) < left <= datetime.timedelta(days=2, seconds=2)
    assert shown[1]["expires"] == "" and not any(row["expired"] for row in shown)
    table = ctl(inviting, "invites")
    assert "bob" in table and "for ever" in table
    assert "bob has a token already" in ctl(inviting, "invite", "bob", expect=BAD)


def test_the_server_keeps_its_key(start, inviting, tmp_path):
    """Started again, or read again, the url is still good."""
    url = invite(inviting)
    certificate = state(tmp_path, "server.pem").read_bytes()
    port = port_of(inviting, "tls")
    inviting.stop()
    start(f"--tls=127.0.0.1:{port}", "--self-signed=yes")
    assert compute(url).startswith("10 ") and state(tmp_path, "server.pem").read_bytes() == certificate


def test_where_the_url_leads(start, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    server = start("--tls=0.0.0.0:0", "--self-signed=yes")
    assert f"@{socket.gethostname()}:" in invite(server, "bob")
    assert "@gpu.example.org:" in invite(server, "carol", "--host=gpu.example.org")
    assert "@[2001:db8::1]:" in invite(server, "dave", "--host", "2001:db8::1")


def test_a_certificate_that_is_there_is_used(start, place):
    """A server with a certificate of an authority invites as well; its clients check the key alone."""
    server = start(*place.options("tls"))
    assert compute(invite(server)).startswith("10 ")


# ---- secrets ----

def test_the_token_is_stored_hashed_and_shown_nowhere(inviting, tmp_path):
    url = invite(inviting)
    token = parts(url)[0]
    assert works(Client(encrypted(inviting), token=token))
    file = state(tmp_path, "tokens")
    assert token not in file.read_text() and "bob sha256:" in file.read_text()
    for name in ("tokens", "server.pem"):
        assert stat.S_IMODE(state(tmp_path, name).stat().st_mode) == 0o600
    assert not any(token in line for line in inviting.lines)
    assert token not in ctl(inviting, "status", "--json") + ctl(inviting, "invites", "--json")


@pytest.mark.parametrize("change", [
    lambda url: url.replace("#sha256:", "#md5:"), lambda url: url[:-1], lambda url: url + "0",
    lambda url: url[:-1] + "g", lambda url: url.replace("tls://", "tcp://"), lambda url: url.replace("tls://", "tsl://"),
    lambda url: url.replace("tls://", "tls:"), lambda url: re.sub(r":\d+#", "#", url),
    lambda url: "tls://@" + url.partition("@")[2], lambda url: url.replace("@", "x" * 300 + "@"),
    lambda url: url.replace("127.0.0.1", "h" * 300),
])
def test_a_url_that_is_wrong_is_not_shown(inviting, change):
    url = invite(inviting)
    said = compute(change(url))
    assert said.startswith("ValueError"), said
    assert parts(url)[0] not in said


def test_the_doctor_shows_no_token(inviting):
    url = invite(inviting)
    env = {**os.environ, "ARRAYD_URL": url, "PYTHONPATH": os.pathsep.join([str(raw.PACKAGE), *sys.path])}
    done = subprocess.run([sys.executable, "-m", "arrayd"], capture_output=True, text=True, timeout=raw.WINDOW, env=env)
    assert done.returncode == 0 and parts(url)[0] not in done.stdout + done.stderr, done


# ---- attackers ----

def test_another_servers_key_gets_no_token(inviting, tmp_path):
    """Somebody between client and server, whose certificate even an authority of the system has signed."""
    url = invite(inviting)
    authority = Authority(tmp_path, "other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("127.0.0.1"))
    got = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def listen():
            plain, _ = listener.accept()
            plain.settimeout(raw.WINDOW)
            try:
                with context.wrap_socket(plain, server_side=True) as s:
                    got.append(s.recv(1000))
            except OSError:
                got.append(b"")
        thread = threading.Thread(target=listen)
        thread.start()
        said = compute(url.replace(f":{parts(url)[1]}#", f":{listener.getsockname()[1]}#"))
        thread.join(raw.WINDOW)
    assert said.startswith("arrayd.TLSError") and "key is not the one that the url names" in said, said
    assert got == [b""], "the handshake fails before anything is sent"


def test_a_wrong_pin(inviting):
    url = invite(inviting)
    pin = parts(url)[2]
    said = compute(url.replace(pin, pin[::-1] if pin != pin[::-1] else "0" * 64))
    assert said.startswith("arrayd.TLSError"), said


def test_without_a_pin_the_certificate_must_be_signed(inviting):
    assert compute(invite(inviting).partition("#")[0]).startswith("arrayd.TLSError")


def test_an_expired_token_ends_sessions_and_lets_nobody_in(inviting, tmp_path):
    token = parts(invite(inviting))[0]
    client = Client(encrypted(inviting), token=token)
    assert works(client)
    file = state(tmp_path, "tokens")
    file.write_text(re.sub("expires=.*", "expires=2020-01-01T00:00:00Z", file.read_text()))
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(inviting.path)  # it has not said who it is when the server looks for tokens that have expired
        inviting.process.send_signal(1)  # SIGHUP
        with pytest.raises(Closed, match="the token has expired"):
            while True:
                works(client)
    error = refusal(lambda: Client(encrypted(inviting), token=token))
    assert error.code == DENIED and "the token of token:bob has expired" in error.text
    assert json.loads(ctl(inviting, "invites", "--json"))[0]["expired"]


def test_a_token_ends_while_the_server_runs(inviting):
    """Nobody reads files again: the server looks at its clock."""
    token = parts(invite(inviting, "bob", "--days=0.00001"))[0]
    with pytest.raises(Closed) as closed:
        client = Client(encrypted(inviting), token=token)
        while True:
            works(client)
    assert closed.value.code == DENIED and "expired" in closed.value.text


def test_revoked_is_out_at_once(inviting):
    url, other = invite(inviting), invite(inviting, "bobby")
    token = parts(url)[0]
    client, stays = Client(encrypted(inviting), token=token), Client(encrypted(inviting), token=parts(other)[0])
    assert works(client) and works(stays)
    assert ctl(inviting, "revoke", "bob") == "bob is out: 1 session ended\n"
    with pytest.raises(Closed, match="an administrator has revoked the token"):
        while True:
            works(client)
    assert "does not know the token" in refusal(lambda: Client(encrypted(inviting), token=token)).text
    assert compute(url).startswith("PermissionError")
    assert works(stays) and "bob has no token" in ctl(inviting, "revoke", "bob", expect=BAD)


@pytest.mark.parametrize("name", ["", "a b", "a\nroot sha256:" + 64 * "0", "a#b", "../tokens", "x" * 57, "-x", "é"])
def test_names_that_are_none(inviting, tmp_path, name):
    before = state(tmp_path, "tokens").read_text()
    for command in ("invite", "revoke"):
        ctl(inviting, command, name, expect=USAGE)
    assert state(tmp_path, "tokens").read_text() == before


@pytest.mark.parametrize("words", [["--days=-1"], ["--days=x"], ["--days=nan"], ["--memory=lots"], ["--memory=0"],
                                   ["--host=a b"], ["--host=a#b"], ["--frobnicate"], ["carol"]])
def test_options_that_are_wrong(inviting, words):
    ctl(inviting, "invite", "bob", *words, expect=USAGE)
    assert json.loads(ctl(inviting, "invites", "--json")) == []


def test_a_file_of_somebody_elses_stays_as_it_is(start, place):
    """Comments, other lines and the mode survive; a file that the server refuses is not made worse."""
    place.tokens.write_text("# mine\n\n" + place.tokens.read_text().rstrip("\n"))  # no end of line
    server = start(*place.options("tls"))
    before = place.tokens.read_text()
    invite(server)
    after = place.tokens.read_text()
    assert after.startswith(before + "\n") and after.count("\n") == before.count("\n") + 2
    assert stat.S_IMODE(place.tokens.stat().st_mode) == 0o600
    ctl(server, "revoke", "bob")
    assert place.tokens.read_text() == before + "\n"


def test_servers_that_cannot_invite(start, place):
    assert "not reached over a network" in ctl(start(), "invite", "bob", expect=BAD)
    only_certificates = start("--tls=127.0.0.1:0", f"--tls-cert={place.certificate}", f"--tls-ca={place.authority.ca}")
    assert "no file of tokens" in ctl(only_certificates, "invite", "bob", expect=BAD)


def test_self_signed_wants_an_address(start):
    server = start("--self-signed=yes", wait=False)
    server.expected_status = 1
    assert server.wait() == 1 and server.said("option self-signed: expected an address to serve")


def test_a_key_that_others_may_read_is_refused(start, inviting, tmp_path):
    inviting.stop()
    state(tmp_path, "server.pem").chmod(0o644)
    server = start("--tls=127.0.0.1:0", "--self-signed=yes", wait=False)
    server.expected_status = 1
    assert server.wait() == 1 and server.said("server.pem")
