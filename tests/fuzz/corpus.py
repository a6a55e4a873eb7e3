"""Seeds for the fuzz targets: corpus.py FOLDER makes FOLDER/<target>/*, with an msgpack that is not the library's."""
import pathlib
import random
import struct
import sys

for folder in ("wire", "fault"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / folder))

import jail  # noqa: E402
from test_codec import BOMBS, MESSAGES, pack  # noqa: E402


def frames():
    for control, flags, payload in ((1, 0, 0), (1 << 20, 0, 4 << 20), (0, 0, 8), (5, 1, 100), (2**32 - 1, 2, 2**64 - 1),
                                    (0, 2, 77), (0, 4, 0), (0, 6, 1)):
        yield struct.pack("<IIQ", control, flags, payload)


def blocks():
    messages = [message for message, _ in MESSAGES]
    yield from (pack(message) for message in messages)
    yield pack(*messages)
    yield from (bomb for bomb in BOMBS.values() if len(bomb) < 4096)


def descriptions():
    rng = random.Random(1)
    for ndim in (0, 1, 2, 3, 8, 32):
        for _ in range(8):
            yield b"".join(bytes([1, rng.randrange(15), ndim, rng.randrange(0x40, 0xc0)]) + bytes(
                rng.choice([0x40, 0x41, 0x42, 0x48, 0xc7, 0xcf, rng.randrange(256)]) for _ in range(4 * ndim))
                for _ in range(2))


def compilations():
    for target in (jail.HOST, jail.CUDA):
        yield jail.job("int f();", target, prelude="//", options=["-D", "A=1", "--std=c++20", "-w"],
                       names=["f", "g<1>"], headers=[("a/b.h", "1"), ("c.h", "")], own_options=["-O3"], flags=3,
                       nvrtc="/x")
    yield b"ADR1" + struct.pack("<II", 0, 0) + jail.word("a warning") + jail.word(b"binary") + jail.words(["f", "g"])
    yield b"ADR1" + struct.pack("<II", 3, 12) + jail.word("refused") + jail.word("") + jail.words([])


SEEDS = {"fuzz_frame": frames, "fuzz_scan": blocks, "fuzz_request": blocks, "fuzz_desc": descriptions,
         "fuzz_compile": compilations}

if __name__ == "__main__":
    for target, seeds in SEEDS.items():
        folder = pathlib.Path(sys.argv[1]) / target
        folder.mkdir(parents=True, exist_ok=True)
        for i, seed in enumerate(seeds()):
            (folder / f"seed-{i:03}").write_bytes(seed)
