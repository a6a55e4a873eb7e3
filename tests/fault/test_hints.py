"""Messages for people who mistype an address, an option or a command, or speak another protocol to a port; and the
report of `python -m arrayd`."""
import os
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest

import raw
from places import port_of

CONNECT = """
import sys, arrayd
try:
    arrayd.connect(sys.argv[1])
    print("connected")
except Exception as error:
    print(type(error).__name__, error)
"""


def run(*command, **more):
    """A program in an environment of nobody: exit status, standard output, standard error."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ARRAYD", "XDG_RUNTIME"))}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=raw.WINDOW,
                          env={**kept, "PYTHONPATH": os.pathsep.join([str(raw.PACKAGE), *sys.path]), **more})
    return done.returncode, done.stdout, done.stderr


def say(url, **more):
    """Return what connecting to the address says."""
    status, out, err = run(sys.executable, "-c", CONNECT, url, **more)
    assert status == 0, err
    return out


# ---- words ----

@pytest.mark.parametrize("url, meant", [
    ("unx:/tmp/s", "unix:/tmp/s"), ("/tmp/s.sock", "unix:/tmp/s.sock"), ("./s.sock", "unix:./s.sock"),
    ("TCP:here:7311", "tcp:here:7311"), ("tpc:here:7311", "tcp:here:7311"), ("tcp//here:7311", "tcp:here:7311"),
    ("embeded:cpu", "embedded:cpu"), ("embedded:gpu", "embedded:cuda"),
    ("embedded:cuad", "embedded:cuda"), ("embedded", "embedded:..."), ("cpu", "embedded:cpu"),
    ("gpu", "embedded:cuda"), ("tcp://here:7311", "tcp:here:7311"), ("tls://here:7312/", "tls:here:7312"),
    ("tcp:here:7311/", "tcp:here:7311"), ("here:7311", "tcp:here:7311 or tls:here:7311"),
])
def test_an_address_that_is_none(url, meant):
    said = say(url)
    assert said.startswith(f"ValueError '{url}' is not a server address: "), said
    assert said.endswith(f"; did you mean {meant}?\n"), said


@pytest.mark.parametrize("url", ["frobnicate:x", "nothing at all", "embedded:frobnicator", ""])
def test_nothing_is_guessed_where_nothing_is_near(url):
    assert "did you mean" not in say(url or ":")


def test_a_browsers_address():
    assert "HTTP is for browsers (option metrics)" in say("http://127.0.0.1:7311")


@pytest.mark.parametrize("word, meant", [("sokcet", "socket"), ("memroy", "memory"), ("log_level", "log-level"),
                                         ("Backend", "backend"), ("confg", "config")])
def test_an_option_that_is_none(word, meant):
    for command in ([f"--{word}=1"], [f"--{word}"]):
        status, _, err = run(raw.PROGRAM, *command)
        assert status != 0 and f'there is no option "{word}"' in err and f"did you mean {meant}?" in err, err


def test_an_option_of_the_file(tmp_path):
    """However long the path is, its end is shown."""
    file = tmp_path / ("x" * 80) / "arrayd.conf"
    file.parent.mkdir()
    file.write_text("sessoins = 5\n")
    _, _, err = run(raw.PROGRAM, f"--config={file}")
    assert "/arrayd.conf:1: " in err and "did you mean sessions?" in err, err


def test_a_word_like_no_option():
    said = run(raw.PROGRAM, "--frobnicate=1")[2]
    assert "did you mean" not in said and "arrayd --help lists them" in said, said


@pytest.mark.parametrize("word, meant", [("staus", "status"), ("sesions", "sessions"), ("Top", "top")])
def test_a_command_that_is_none(word, meant):
    status, _, err = run(raw.BUILD / "bin" / "arrayctl", word)
    assert status == 2 and f"did you mean {meant}?" in err, err


def test_options_before_the_command(server):
    """arrayctl takes its options on either side of the command."""
    ctl = raw.BUILD / "bin" / "arrayctl"
    for arguments in (["names", "--json", f"--socket={server.path}"], ["--socket", server.path, "--json", "names"]):
        status, out, err = run(ctl, *arguments)
        assert status == 0 and out.startswith(("[", "{")), (arguments, out, err)
    status, out, err = run(ctl, "--sokcet=x", "names")
    assert status == 2 and "no such option before a command: --sokcet=x" in err and not out, err
    status, _, err = run(ctl, "--json")
    assert status == 2 and "usage: arrayctl COMMAND" in err, err
    status, out, _ = run(ctl, "--help")
    assert status == 0 and "usage: arrayctl COMMAND" in out, out


# ---- servers that are not there ----

def test_a_socket_that_nobody_serves(tmp_path):
    said = say(f"unix:{tmp_path}/s")
    assert said.startswith(f"ConnectionError no arrayd at unix:{tmp_path}/s: No such file"), said
    assert said.endswith(f"; `arrayd --socket={tmp_path}/s &` starts one there\n"), said


@pytest.mark.parametrize("scheme", ("tcp", "tls"))
def test_a_port_that_nobody_serves(scheme):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    said = say(f"{scheme}:127.0.0.1:{port}")
    assert said.startswith(f"ConnectionError no arrayd at {scheme}:127.0.0.1:{port}: "), said
    assert said.endswith(f"; a server listens there if it has the option {scheme}, as 127.0.0.1:{port}\n"), said


def test_arrayctl_without_a_server(tmp_path):
    status, _, err = run(raw.BUILD / "bin" / "arrayctl", "sessions", f"--socket={tmp_path}/s")
    assert status == 3 and "; `arrayd &` starts one, --socket=PATH names that of another place" in err, err


def test_arguments_that_arrayctl_does_not_take():
    status, _, err = run(raw.BUILD / "bin" / "arrayctl", "memory", "5")
    assert status == 2 and 'arrayctl memory: expected nothing but options, but there is "5"' in err, err
    status, _, err = run(raw.BUILD / "bin" / "arrayctl", "trace", "1", "2")
    assert status == 2 and 'arrayctl trace: expected one session and options, but there is "2", too' in err, err


def test_a_number_that_is_too_large(tmp_path):
    status, _, err = run(raw.PROGRAM, f"--socket={tmp_path}/s", "--sessions=99999999999999999999")
    assert status == 2 and "expected a whole number below 2^64" in err, err


def test_a_grant_that_there_is_not(tmp_path):
    (tmp_path / "principals").write_text("uid:0 memroy=64M\n")
    _, _, err = run(raw.PROGRAM, f"--socket={tmp_path}/s", f"--principals={tmp_path}/principals")
    assert 'principals:1: \\"memroy\\": there is no such grant: docs/operations.md lists them' in err, err


def test_arrayctl_beside_a_server_elsewhere(tmp_path):
    """arrayctl asks a socket of this machine: where the programs' server is elsewhere, it says so."""
    status, _, err = run(raw.BUILD / "bin" / "arrayctl", "sessions", ARRAYD_URL="tcp:here:7311", XDG_RUNTIME_DIR=str(tmp_path))
    assert status == 3 and "ARRAYD_URL names no socket of this machine" in err, err
    status, _, err = run(raw.BUILD / "bin" / "arrayctl", "sessions", f"--socket={tmp_path}/s", ARRAYD_URL="tcp:here:7311")
    assert status == 3 and "ARRAYD_URL" not in err, err


def test_a_backend_that_is_not_installed(tmp_path):
    """Where to get it; with a folder of backends, which one was looked into."""
    (tmp_path / "backends").mkdir()
    for backend in ("cpu", "cuda"):
        _, _, err = run(raw.PROGRAM, f"--socket={tmp_path}/s", f"--backend={backend}", f"--backend-path={tmp_path}/backends")
        assert f"libarrayd-{backend}.so is not there, in {tmp_path}/backends (option backend-path)" in err, err
    if not (raw.BUILD / "bin/libarrayd-cuda.so").exists():
        _, _, err = run(raw.PROGRAM, f"--socket={tmp_path}/s", "--backend=cuda")
        assert 'pip install \\"arrayd[cuda]\\" brings it' in err, err


# ---- protocols ----

def test_without_tls_at_a_port_with_it(start, place):
    server = start(*place.options("tls"))
    said = say(f"tcp:127.0.0.1:{port_of(server, 'tls')}", ARRAYD_TOKEN=place.token["alice"])
    assert said.startswith("ConnectionError") and "write tls: for tcp:" in said, said


def test_tls_at_a_port_without_it(start, place):
    server = start(*place.options("tcp"))
    said = say(f"tls:127.0.0.1:{port_of(server, 'tcp')}", ARRAYD_CA=str(place.authority.ca))
    assert said.startswith("TLSError") and "does not speak TLS" in said and "tcp:" in said, said
    raw.wait_until(lambda: server.said("TLS is spoken at a port without it"), "it is logged")


def answer_as_http(listener):
    """Be a web server that refuses a connection's first bytes, as nginx does."""
    connection, _ = listener.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


def test_a_web_server():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer_as_http, args=[listener])
        thread.start()
        said = say(f"tcp:127.0.0.1:{listener.getsockname()[1]}")
        thread.join()
    assert said.startswith("ConnectionError") and "that is a web server" in said, said


def test_a_browser(start, place):
    server = start(*place.options("tcp"))
    with pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.urlopen(f"http://127.0.0.1:{port_of(server, 'tcp')}/", timeout=raw.WINDOW)
    assert answer.value.code == 400 and b"option metrics" in answer.value.read()
    raw.wait_until(lambda: server.said("a browser"), "it is logged")


# ---- the doctor ----

def examine(*arguments, **more):
    """The report of `python -m arrayd`, and its exit status."""
    status, out, err = run(sys.executable, "-m", "arrayd", *arguments, **more)
    assert "Traceback" not in err, err
    return status, re.sub(r"\s+", " ", out)


def test_the_doctor_of_a_server_that_is_there(server):
    status, out = examine(ARRAYD_URL=f"unix:{server.path}")
    assert status == 0 and f"used unix:{server.path}, ARRAYD_URL names it" in out, out
    for part in ("computes yes, as NumPy", f"backend {raw.BACKEND} (", "us (float(a.sum())", "GB/s to the server",
                 "own kernels allowed", "Nothing: all is well."):
        assert part in out, out


def test_the_doctor_says_why_not_the_others(tmp_path):
    status, out = examine(XDG_RUNTIME_DIR=str(tmp_path), ARRAYD_BIN=str(raw.PROGRAM), ARRAYD_BACKEND="cpu")
    assert status == 0 and f"not usable no arrayd at unix:{tmp_path}/arrayd.sock: No such file" in out, out
    assert "used embedded:auto" in out and "a server of its own" in out and "run `arrayd &`" in out, out


def test_the_doctor_where_there_is_none(tmp_path):
    status, out = examine(ARRAYD_URL=f"unix:{tmp_path}/nowhere", ARRAYD_SOKET="/x")
    assert status == 1 and "not usable" in out and "No server can be used" in out, out
    assert "Nothing reads the variable ARRAYD_SOKET; did you mean ARRAYD_SOCKET?" in out, out
    status, out = examine("tpc:here:1")
    assert status == 1 and "did you mean tcp:here:1?" in out, out


@pytest.mark.parametrize("name, meant", [
    ("ARRAYD_ULR", "ARRAYD_URL"), ("ARRAYD_TOKN", "ARRAYD_TOKEN"), ("ARRAYD_BACKENDS", "ARRAYD_BACKEND"),
    ("ARRAYD_LOGLEVEL", "ARRAYD_LOG_LEVEL"),
    # The common prefix makes no two names alike.
    ("ARRAYD_BUILD", None), ("ARRAYD_X", None), ("ARRAYD_HOME_OF_MINE", None), ("ARRAYD_TEST_BACKEND", None),
    ("ARRAYDAISY", None),
])
def test_variables_that_nothing_reads(monkeypatch, name, meant):
    from arrayd import _doctor
    for each in [each for each in os.environ if each.startswith("ARRAYD")]:
        monkeypatch.delenv(each)
    monkeypatch.setenv(name, "x")
    assert _doctor.find_misspelt_variables() == ([(name, meant)] if meant else [])


def test_the_doctor_knows_the_variables_that_the_client_reads():
    from arrayd import _doctor
    read = set()
    for folder in ("client-c", "client-python"):
        for file in sorted(raw.TOP.glob(f"{folder}/**/*.[cp]*")):
            if file.suffix in (".c", ".py") and file.name != "_doctor.py":
                read.update(re.findall(r'"(ARRAYD_[A-Z0-9_]+)"', file.read_text()))
    assert len(read) > 10 and read <= set(_doctor.VARIABLES), read - set(_doctor.VARIABLES)


def test_the_doctor_is_asked_wrongly():
    assert examine("--frobnicate")[0] == 2 and examine("a", "b")[0] == 2
    status, out = examine("--help")
    assert status == 0 and out.startswith("usage: python -m arrayd [URL]")
