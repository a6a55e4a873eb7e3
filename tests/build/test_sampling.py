"""What `make test` leaves out, and that the next commits have it."""
import sys

import pytest

from commands import TOP

sys.path.append(str(TOP / "tests"))
from sampling import choose, read_long  # noqa: E402

SHORT = [f"fault/test_a.py::test_short[{i}]" for i in range(50)]
LONG = [f"fault/test_b.py::test_{name}[{i}]" for name in ("minutes", "new") for i in range(20)]
SECONDS = {"fault/test_b.py::test_minutes": 60.0, "fault/test_b.py::test_new": 2.0}


def spent(names):
    return sum(SECONDS.get(name.split("[")[0], 0) for name in names)


@pytest.mark.parametrize("part", [1, 2, 4, 50])
def test_a_sample_has_its_part_of_the_seconds_and_all_that_is_short(part):
    for seed in range(20):
        chosen = choose(SHORT + LONG, SECONDS, part, seed)
        assert chosen == choose(LONG[::-1] + SHORT, SECONDS, part, seed)
        assert chosen.issuperset(SHORT)
        assert spent(LONG) / part <= spent(chosen) < spent(LONG) / part + 60


def test_every_test_has_its_turn():
    samples = [choose(LONG, SECONDS, 4, seed) for seed in range(80)]
    assert set.union(*samples) == set(LONG)
    assert all(5 <= sum(name in chosen for chosen in samples) <= 45 for name in LONG)


def test_the_list_names_tests_that_there_are():
    for name, seconds in read_long().items():
        file, function = name.split("::")
        assert f"def {function}(" in (TOP / "tests" / file).read_text() and seconds > 0, name
