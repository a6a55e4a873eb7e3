"""A long way to a server: a proxy whose bytes take their time in both directions."""
import collections
import contextlib
import random
import socket
import threading
import time

SEGMENT = 1448  # bytes of a packet; of those that are lost the rest of the stream waits for the repetition


class _Direction:
    """Bytes from one socket to another, each a delay later than it came, in order."""

    def __init__(self, source, target, way):
        self.source, self.target, self.way = source, target, way
        self.waiting, self.changed, self.ended = collections.deque(), threading.Condition(), False
        self.random, self.latest = random.Random(5), 0.0
        for work in (self.read, self.write):
            threading.Thread(target=work, daemon=True).start()

    def due(self, size):
        """Tell when these bytes arrive: not before what came earlier."""
        now = time.monotonic()
        lost = sum(self.random.random() < self.way.loss for _ in range(-(-size // SEGMENT)))
        self.latest = max(self.latest, now + self.way.delay * (1 + 2 * bool(lost)))
        return self.latest

    def read(self):
        data = b"x"
        while data:
            try:
                data = self.source.recv(1 << 18)
            except OSError:
                data = b""
            with self.changed:
                self.waiting.append((self.due(len(data)), data))
                self.changed.notify()

    def write(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting)
                at, data = self.waiting.popleft()
            time.sleep(max(0.0, at - time.monotonic()))
            with contextlib.suppress(OSError):
                if not data:
                    self.target.shutdown(socket.SHUT_WR)
                    return
                self.target.sendall(data)


class Way:
    """Listens at `port` on loopback for clients of the server at another port."""

    def __init__(self, port, delay, loss=0.0):
        self.delay, self.loss, self.server = delay, loss, port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.server))
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _Direction(client, server, self)
                _Direction(server, client, self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
