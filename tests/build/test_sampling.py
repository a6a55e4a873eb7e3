"""`make test` leaves some tests out, and the next commits run them."""
import importlib.util
import sys

import pytest

from commands import BUILD, TOP

sys.path.append(str(TOP / "tests"))
from sampling import choose, read_long  # noqa: E402

# By its path, as the conformance suite has a module of this name.
_spec = importlib.util.spec_from_file_location("tests_run", TOP / "tests" / "run.py")
run = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(run)

SHORT = [f"fault/test_a.py::test_short[{i}]" for i in range(50)]
LONG = [f"fault/test_b.py::test_{name}[{i}]" for name in ("seconds", "new") for i in range(20)]
LONGER = [f"fault/test_b.py::test_minutes[{i}]" for i in range(3)]
SECONDS = {"fault/test_b.py::test_seconds": 1.5, "fault/test_b.py::test_new": 0.5, "fault/test_b.py::test_minutes": 60.0}


def spent(names):
    return sum(SECONDS.get(name.split("[")[0], 0) for name in names)


@pytest.mark.parametrize("part", [1, 2, 4, 50])
def test_a_sample_has_its_part_of_the_seconds_and_all_that_is_short(part):
    for seed in range(20):
        chosen = choose(SHORT + LONG, SECONDS, part, seed)
        assert chosen == choose(LONG[::-1] + SHORT, SECONDS, part, seed)
        assert chosen.issuperset(SHORT)
        assert spent(LONG) / part <= spent(chosen) < spent(LONG) / part + 1.5
        if part > 1:
            assert chosen == choose(LONGER + LONG + SHORT, SECONDS, part, seed)


def test_every_test_has_its_turn():
    samples = [choose(LONG, SECONDS, 4, seed) for seed in range(80)]
    assert set.union(*samples) == set(LONG)
    assert all(5 <= sum(name in chosen for chosen in samples) <= 45 for name in LONG)


class Options:
    """The options of run.py's command line."""

    def __init__(self, sample=0, rest=False):
        self.sample, self.rest, self.seed = sample, rest, "a"


@pytest.mark.parametrize("suite", run.SUITES)
def test_each_suite_is_run_by_the_sample_or_the_rest(suite):
    """`make test-rest` has every program, and every test of a suite of pytest, that `make test` leaves out."""
    whole, sample, rest = ({command[0]: command[1] for command in run.commands(suite, BUILD, BUILD, options)}
                           for options in (Options(), Options(4), Options(4, True)))
    assert whole and sample.keys() | rest.keys() == whole.keys()
    for name in sample.keys() & rest.keys() - run.AGAIN:
        assert set(rest[name]) - set(sample[name]) == {"--sample-rest"}, name
    for name in sample.keys() ^ rest.keys():
        assert not [word for word in (sample.get(name) or rest[name]) if str(word).startswith("--sample")], name


def test_the_list_names_tests_that_there_are():
    for name, seconds in read_long().items():
        file, function = name.split("::")
        assert f"def {function}(" in (TOP / "tests" / file).read_text() and seconds > 0, name
