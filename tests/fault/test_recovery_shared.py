"""Survival and shared memory: who has the same array goes on apart from the others, whichever of them writes first."""
import pytest

import raw
from test_exports import program
from test_recovery import LATE, OPEN, kill

HEAD = """
import os, pickle, signal, sys

def worker_is_killed():
    ad.sync()
    print("now", flush=True)
    assert sys.stdin.readline()

def differs(array, expected):
    return not np.array_equal(array.get(), expected)

x = np.random.default_rng(1).random(SIZE)
a = ad.asarray(x)
ad.sync()
"""
# Ways in which there come to be two holders. A kill in between finds no difference.
SHARED = {
    "used up": "b = pickle.loads(pickle.dumps(ad.share(a, uses=1, linger=1))).attach()",
    "capability": "c = ad.share(a)\nb = c.attach()",
}
APART = """
worker_is_killed()
b += 1
assert not differs(a, x) and not differs(b, x + 1)
worker_is_killed()
a *= 2
b += 1
assert not differs(a, 2 * x) and not differs(b, x + 2)
"""
WAITING = """
c = ad.share(a)
worker_is_killed()
a += 1
worker_is_killed()
b = c.attach()
b *= 3
assert not differs(a, x + 1) and not differs(b, 3 * x)
"""
PUBLISHED = """
ad.publish("n", a)
worker_is_killed()
a += 1
worker_is_killed()
b = ad.attach("n") * 1
assert not differs(a, x + 1) and not differs(b, x)
"""
FORKED = """
ours, theirs = os.pipe()
child = os.fork()
if not child:
    a += 1
    os.write(theirs, bytes([differs(a, x + 1)]))
    signal.pause()
assert os.read(ours, 1) == bytes(1)
worker_is_killed()
a *= 3
assert not differs(a, 3 * x)
os.kill(child, signal.SIGKILL)
"""
PROGRAMS = {**{name: text + APART for name, text in SHARED.items()}, "waiting": WAITING, "published": PUBLISHED,
            "forked": FORKED}


def go_through(server, text, size):
    """The program, whose worker is killed wherever it says so."""
    client = program(HEAD.replace("SIZE", str(size)) + text, f"unix:{server.path}")
    try:
        while client.stdout.readline() == "now\n":
            kill(server)
            client.stdin.write("\n")
            client.stdin.flush()
        assert client.wait(raw.WINDOW) == 0, client.stderr.read()
    finally:
        client.kill()
        client.communicate()


@pytest.mark.parametrize("late", [False, True], ids=["at once", "late"])
@pytest.mark.parametrize("size", [100, 300_000])
@pytest.mark.parametrize("how", PROGRAMS)
def test_they_are_apart(start, how, size, late):
    go_through(start(*OPEN, env=LATE if late else {}), PROGRAMS[how], size)


def test_an_empty_array_keeps_its_name_and_its_capability(start):
    go_through(start(*OPEN), """
ad.publish("n", ad.empty((0, 3)))
c = ad.share(ad.empty(0))
worker_is_killed()
assert ad.attach("n").shape == (0, 3) and c.attach().shape == (0,)
""", 1)


def test_it_is_one_array_to_be_written(start):
    """Memory that was published to be written stays common."""
    go_through(start(*OPEN), """
ad.publish("n", a, writable=True)
b = ad.attach("n")
worker_is_killed()
b += 1
assert not differs(a, x + 1)
ad.unpublish("n")
worker_is_killed()
a += 1
assert not differs(b, x + 2)
""", 1000)
