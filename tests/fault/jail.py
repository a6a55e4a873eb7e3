"""Uses arrayd-compile by its pipes. Jobs go in as bytes, and results come back."""
import os
import pathlib
import signal
import struct
import subprocess

from raw import WINDOW

BIN = pathlib.Path(os.environ.get("ARRAYD_BUILD", "build/release")).resolve() / "bin"
KINDS = ["made", "wrong", "stopped", "refused"]
CUDA, HOST = 0, 1
OPEN, OWN = 1, 2


def word(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<I", len(data)) + data + b"\0"


def words(texts):
    return struct.pack("<I", len(texts)) + b"".join(word(t) for t in texts)


def job(source, target=HOST, arch=None, options=(), names=(), prelude="", headers=(), own_options=(), flags=0,
        seconds=5, memory=2 << 30, nvrtc=""):
    """The frame of a job."""
    arch = ("" if target == HOST else "sm_90") if arch is None else arch
    return (b"ADJ1" + struct.pack("<IIIQ", target, flags, seconds, memory) + word(nvrtc) + word(arch) + word(prelude)
            + word(source) + words(options) + words(own_options) + words(names) + struct.pack("<I", len(headers))
            + b"".join(word(n) + word(t) for n, t in headers))


class Result:
    """The result of a job: kind, code, log, binary, lowered."""

    def __init__(self, data):
        assert data[:4] == b"ADR1", data[:200]
        kind, self.code = struct.unpack_from("<II", data, 4)
        self.kind = KINDS[kind]
        self._data, self._at = data, 12
        self.log = self._word().decode(errors="replace")
        self.binary = self._word()
        self.lowered = [self._word().decode() for _ in range(self._number())]
        assert self._at == len(data)

    def _number(self):
        self._at += 4
        return struct.unpack_from("<I", self._data, self._at - 4)[0]

    def _word(self):
        size = self._number()
        self._at += size + 1
        assert self._data[self._at - 1] == 0
        return self._data[self._at - size - 1:self._at - 1]


class Running:
    """A compilation under way."""

    def __init__(self, frame):
        self.process = subprocess.Popen([BIN / "arrayd-compile"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={})
        self.frame = frame

    def end(self, timeout=WINDOW):
        """The result; `raw` is the whole of it."""
        try:
            self.raw = self.process.communicate(self.frame, timeout)[0]
        finally:
            if self.process.poll() is None:
                os.kill(self.process.pid, signal.SIGKILL)
                self.process.wait()
        result = Result(self.raw)
        result.raw = self.raw
        return result


def compile(source, *arguments, **more):
    """Compile and wait."""
    return Running(job(source, *arguments, **more)).end()


def has_nvrtc():
    return compile("__global__ void f() {}", CUDA).kind != "refused"
