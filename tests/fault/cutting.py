"""A proxy that cuts connections at chosen bytes, and a program that counts through it."""
import contextlib
import os
import random
import selectors
import socket
import threading

CHUNK = 1 << 16


def listen(address):
    """A listening socket: of a path, or on a port of loopback (None: any)."""
    s = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(address if isinstance(address, str) else ("127.0.0.1", address or 0))
    s.listen(16)
    return s


class Cut(Exception):
    """A direction has passed as many bytes as it may."""


class Direction:
    """Passes bytes on, with the descriptors that come along, and not one more than `budget`."""

    def __init__(self, source, target, budget):
        self.source, self.target, self.left = source, target, budget

    def move(self):
        """Cut: the end has come, or all that may pass has."""
        want = min(CHUNK, self.left + 1)
        try:
            if self.source.family == socket.AF_UNIX:
                data, fds, _, _ = socket.recv_fds(self.source, want, 4)
            else:
                data, fds = self.source.recv(want), []
        except ConnectionError:
            raise Cut from None
        try:
            self.forward(data[:self.left], fds if len(data) <= self.left else [])  # with the byte that is cut off
        finally:
            for fd in fds:
                os.close(fd)
        if not data or len(data) > self.left:
            raise Cut
        self.left -= len(data)

    def forward(self, data, fds):
        """A descriptor is read with the byte that it was sent with, which is then the last one of what was read."""
        try:
            if fds and data:
                self.target.sendall(data[:-1])
                socket.send_fds(self.target, [data[-1:]], fds)
            else:
                self.target.sendall(data)
        except OSError:
            raise Cut from None


class Proxy:
    """Listens beside a server. `budgets(n)`: how many bytes the n-th connection may pass up and down."""

    def __init__(self, server, address, budgets, seed=0):
        self.server, self.budgets = server, budgets
        self.listener = listen(address)
        self.random = random.Random(seed)
        self.connections, self.open, self.lock, self.down = 0, [], threading.Lock(), None
        self.ended = False
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def port(self):
        return self.listener.getsockname()[1]

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            upstream = socket.socket(socket.AF_UNIX if isinstance(self.server, str) else socket.AF_INET)
            try:
                upstream.connect(self.server)
            except OSError:
                client.close()
                continue
            for s in (client, upstream):
                if s.family == socket.AF_INET:
                    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                budget = self.budgets(self.connections)
                self.connections += 1
                self.open.append((client, upstream))
            threading.Thread(target=self.serve, args=(client, upstream, budget), daemon=True).start()

    def serve(self, client, upstream, budget):
        ways = {client: Direction(client, upstream, budget[0]), upstream: Direction(upstream, client, budget[1])}
        self.down = ways[upstream]  # of the latest connection
        with selectors.DefaultSelector() as ready, contextlib.suppress(Cut, OSError, ValueError):
            for source in ways:
                ready.register(source, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    ways[key.fileobj].move()
        with self.lock:
            with contextlib.suppress(ValueError):
                self.open.remove((client, upstream))
        for s in (client, upstream):
            if self.random.random() < 0.3 and s.family == socket.AF_INET:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # it ends with a reset
            s.close()

    def cut(self):
        """Cut all connections, now."""
        with self.lock:
            for pair in self.open:
                for s in pair:
                    with contextlib.suppress(OSError):
                        s.shutdown(socket.SHUT_RDWR)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
