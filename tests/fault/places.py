"""Servers that are reached over a network: their tokens and certificates, and clients of them."""
import contextlib
import os
import re
import signal
import socket
import subprocess

import numpy as np
import pytest

import raw
from certificates import Authority
from raw import Client, Closed, wait_until

PROTOCOL, LIMIT, DENIED = 9, 11, 12


def make_token(name):
    """A new token, and its line for the file."""
    out = subprocess.run([raw.PROGRAM, "--make-token", name], capture_output=True, text=True, check=True).stdout
    return re.fullmatch(r"token  (\S+)\nline   (.+)\n", out).groups()


def port_of(server, way):
    ready = next(line for line in server.lines if "event=ready" in line)
    return int(re.search(rf"\b{way}:127\.0\.0\.1:(\d+)", ready)[1])


def said_since(server, count, text):
    return any(text in line for line in server.lines[count:])


class Place:
    """A folder with an authority, a server's certificate and tokens."""

    def __init__(self, folder):
        self.folder = folder
        self.authority = Authority(folder)
        self.certificate = self.authority.issue("127.0.0.1", "localhost")
        self.tokens = folder / "tokens"
        self.lines, self.token = {}, {}
        self.add("alice")

    def add(self, name, grants=""):
        self.token[name], line = make_token(name)
        self.lines[name] = f"{line} {grants}\n"
        self.write()

    def remove(self, name):
        del self.lines[name]
        self.write()

    def write(self):
        self.tokens.write_text("# who may come in\n\n" + "".join(self.lines.values()))
        self.tokens.chmod(0o600)

    def options(self, *ways, clients=False):
        options = [f"--{way}=127.0.0.1:0" for way in ways] + [f"--tokens={self.tokens}"]
        if "tls" in ways:
            options.append(f"--tls-cert={self.certificate}")
        return options + ([f"--tls-ca={self.authority.ca}"] if clients else [])

    def socket(self, server, way="tls", certificate=None, source=None):
        """A connected socket, past the handshake of TLS."""
        plain = socket.create_connection(("127.0.0.1", port_of(server, way)), raw.WINDOW, source_address=source)
        if way == "tcp":
            return plain
        return self.authority.context(certificate).wrap_socket(plain, server_hostname="127.0.0.1")

    def client(self, server, way="tls", token="alice", certificate=None):
        return Client(self.socket(server, way, certificate), token=self.token.get(token, token))


def refusal(connecting):
    with pytest.raises(Closed) as closed:
        connecting()
    return closed.value


def works(client):
    x = client.put(np.arange(1000.0))
    return client.get(client.sum("float64", x)) == 499500


def reload(server):
    count = len(server.lines)
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: said_since(server, count, "reloaded"), "the files are read again")
    return not said_since(server, count, "not reloaded")


def sockets(pid):
    count = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")
    return count


def memory_of(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmRSS:\s+(\d+) kB", f.read())[1]) << 10
