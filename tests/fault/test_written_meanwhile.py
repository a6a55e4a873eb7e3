"""Operands that a client writes over while operations run: every row of the tables, beside another user's arrays."""
import pytest

import raw
from attacking import ATTACKER, attack, needs_users
from raw import CALL, REDUCTION, UFUNC

# Operations by indices or masks are run more often: these were the ones that could be broken.
BY_INDICES = ("gather", "scatter", "compress", "place", "nonzero", "bincount")
pytestmark = needs_users


def write_over(start, rows, rounds):
    """Attack rows, by a second user in the worker, as nobody may run kernels. The worker is the same one in the end."""
    server = start("--kernels=none", "--socket-mode=0666")
    workers = raw.children(server.pid)
    found = attack(server, "meanwhile.py", "attack", ATTACKER, ",".join(rows), rounds)
    assert raw.children(server.pid) == workers, "the worker died"
    assert not found["wrong"], found
    assert found["written"] and found["cases"] >= len(rows) and found["done"], found
    return found


@pytest.mark.parametrize("row", BY_INDICES)
def test_indices_and_masks(start, row):
    write_over(start, [f"call:{row}"], 300)


def test_other_calls(start):
    """Of a few rows all results may be refused: a matrix that changes at the wrong moment has NaN."""
    rows = [f"call:{name}" for name in CALL if name not in BY_INDICES]
    done = write_over(start, rows, 12)["rows"]
    assert set(done) == set(rows) and sum(map(bool, done.values())) > len(rows) / 2


def test_reductions(start):
    rows = [f"reduction:{name}" for name in REDUCTION]
    done = write_over(start, rows, 3)["rows"]
    assert set(done) == set(rows) and all(done.values())


@pytest.mark.parametrize("part", range(2))
def test_ufuncs(start, part):
    rows = [f"ufunc:{name}" for name in list(UFUNC)[part::2]]
    done = write_over(start, rows, 3)["rows"]
    assert set(done) == set(rows) and all(done.values())
