"""The differential fuzzer (tests/fuzz/differential.py): a seed of it, and that it sees a difference."""
import pathlib
import sys

import pytest

from raw import cpu_only

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "fuzz"))

import differential  # noqa: E402

pytestmark = cpu_only  # the late device is one of the CPU backend


@pytest.fixture
def subjects():
    started = differential.start_subjects()
    yield started
    for subject in started:
        subject.server.stop()


def test_three_servers_answer_the_same(subjects):
    operations, values = differential.run_seed(subjects, 1, rounds=70)
    assert operations > 150 and values > operations / 10
    assert sum(subject.deaths for subject in subjects) > 0


def test_a_difference_is_seen(subjects):
    """One server has another first byte in one buffer."""
    upload = subjects[1].upload
    subjects[1].upload = lambda buffer, data: upload(buffer, bytes([data[0] ^ 1]) + data[1:] if buffer == 2 else data)
    with pytest.raises(differential.Difference, match=r"(?s)one by one.*late"):
        differential.run_seed(subjects, 1, rounds=70)
