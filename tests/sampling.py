"""A plugin of pytest: of the tests that take long only a part, chosen by a seed; all the others. run.py uses it.

tests/long.txt says which take long, and how many seconds each of a function's cases takes: a test that is not there is
short. Cases are taken in the order of a hash of their names and the seed, until a part of all their seconds is reached.
So new cases are chosen as often as old ones, and each part takes as long as the others. The longest cases are in no
sample: they are always part of the rest.
"""
import hashlib
import pathlib

LONGEST = 2.0  # seconds from which a case is in no sample
LONG = pathlib.Path(__file__).with_name("long.txt")


def read_long():
    """Seconds of each case, by the function's name."""
    rows = (line.split() for line in LONG.read_text().splitlines() if not line.startswith("#"))
    return {name: float(seconds) for seconds, name in rows}


def choose(names, seconds, part, seed):
    """The tests of these names that are in the sample; seconds: of those functions that take long."""
    long = {name: seconds[name.split("[")[0]] for name in names if name.split("[")[0] in seconds}
    chosen = set(names) - long.keys()
    sampled = [name for name in long if part == 1 or long[name] < LONGEST]
    left = sum(long[name] for name in sampled) / part
    for name in sorted(sampled, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest()):
        if left <= 0:
            break
        chosen.add(name)
        left -= long[name]
    return chosen


def pytest_addoption(parser):
    parser.addoption("--sample", type=int, help="one part of so many of the tests that take long")
    parser.addoption("--sample-seed", default="", help="which part")
    parser.addoption("--sample-rest", action="store_true", help="all that is not in the sample")


def pytest_collection_modifyitems(config, items):
    options = config.option
    if not options.sample:
        return
    chosen = choose([item.nodeid for item in items], read_long(), options.sample, options.sample_seed)
    left_out = [item for item in items if (item.nodeid in chosen) == options.sample_rest]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if (item.nodeid in chosen) != options.sample_rest]
