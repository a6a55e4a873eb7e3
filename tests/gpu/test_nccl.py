"""Groups of two processes on two GPUs that exchange arrays by NCCL: skipped where there are fewer, or no NCCL 2.18."""
import os
import pathlib
import re
import socket
import subprocess
import sys

import pytest

from arrayd.cupyx.distributed._nccl import Library
from conftest import gpus
from patience import PATIENCE

MEMBER = pathlib.Path(__file__).parents[1] / "api" / "group_member.py"


def has_library():
    try:
        return Library().version > 0
    except (ConnectionError, AttributeError):
        return False


pytestmark = [pytest.mark.skipif(gpus() < 2, reason="there are fewer than two GPUs"),
              pytest.mark.skipif(not has_library(), reason="there is no NCCL of version 2.18")]


def run_members(program, transport):
    """The exit statuses of two members, and all that they print."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    environment = {**os.environ, "ARRAYD_GROUP_TRANSPORT": transport}
    members = [subprocess.Popen([sys.executable, MEMBER, "2", str(rank), str(port), *program.split()], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) for rank in range(2)]
    try:
        results = [each.communicate(timeout=PATIENCE) for each in members]
    finally:
        for each in members:
            each.kill()
    return [each.returncode for each in members], [out.strip() for out, _ in results], [error for _, error in results]


def test_arrays_go_by_nccl():
    codes, told, errors = run_members("types patterns large sparse direct refused", "nccl")
    assert codes == [0, 0], errors
    assert told == ["by NCCL", "by NCCL"]


def test_members_of_one_server_let_it_copy():
    codes, told, errors = run_members("why types", "auto")
    assert codes == [0, 0], errors
    assert told == ["all members use one server, which copies\nby handle"] * 2


def test_a_member_that_is_killed_between_two_sums():
    codes, told, errors = run_members("killed", "nccl")
    assert codes == [0, -9], errors
    assert re.search("rank 1 of the group has ended", told[0]), told
