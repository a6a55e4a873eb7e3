"""The cache of kernels on disk, by arrayctl: what is damaged is never loaded; trouble with a disk is only a miss."""
import contextlib
import hashlib
import os
import pathlib
import random
import re
import stat
import struct
import subprocess

import pytest

import jail
import raw

MAGIC = b"arrayd-kernel-1\n"
HEAD = 32 + 64
NVRTC = jail.has_nvrtc()
FIELDS = ["kept", "wanted", "compiled", "there", "wrong", "refused"]


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def canonical(source, target=jail.HOST, **more):
    """A job as it is kept: without limits."""
    return jail.job(source, target, seconds=0, memory=0, **more)


def plant(folder, *jobs):
    """Files from which arrayctl takes jobs; their results are nothing."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for job in jobs:
        key, sizes = sha(job), struct.pack("<QQ", 1, len(job))
        hashes = sha(MAGIC, sizes, key, b"x") + sha(job)
        (folder / f"{key.hex()}.kernel").write_bytes(MAGIC + sizes + hashes + b"x" + job)
    return folder


def warm(cache, jobs, *more, archs=("x86-64-v2",), status=0):
    """Run arrayctl warm; the numbers that it prints."""
    done = subprocess.run([jail.BIN / "arrayctl", "warm", f"--kernels-cache={cache}", f"--from={jobs}",
                           *(f"--arch={a}" for a in archs), *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=raw.WINDOW)
    assert done.returncode == status, done.stderr
    assert "Sanitizer" not in done.stderr, done.stderr
    return dict(zip(FIELDS, map(int, re.findall(r"\d+", done.stdout)))), done.stderr


def entries(cache):
    return sorted(pathlib.Path(cache).glob("*.kernel"))


def check(path):
    """An entry, whole; its result."""
    data = path.read_bytes()
    result, job = struct.unpack_from("<QQ", data, 16)
    assert data[:16] == MAGIC and len(data) == HEAD + result + job
    assert data[32:64] == sha(data[:32], bytes.fromhex(path.stem), data[HEAD:HEAD + result])
    assert data[64:96] == sha(data[HEAD + result:])
    return jail.Result(data[HEAD:HEAD + result]), data[HEAD + result:]


@pytest.fixture
def jobs(tmp_path):
    return plant(tmp_path / "jobs", canonical("int f() { return 1; }"), canonical("int f() { return 2; }"),
                 canonical("#error no\n"))


def test_warm_compiles_once(tmp_path, jobs):
    cache = tmp_path / "a" / "cache"
    archs = ("x86-64-v2", "x86-64-v3")
    assert warm(cache, jobs, archs=archs)[0] == dict(zip(FIELDS, [3, 6, 6, 0, 2, 0]))
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    found = [check(p) for p in entries(cache)]
    assert sorted(r.kind for r, _ in found) == ["made"] * 4 + ["wrong"] * 2
    assert all(r.binary[:4] == b"\x7fELF" for r, _ in found if r.kind == "made")
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in entries(cache))
    assert warm(cache, jobs, archs=archs)[0] == dict(zip(FIELDS, [3, 6, 0, 6, 2, 0]))
    # Without --from the jobs are those of the cache, of which three are the same but for the architecture.
    assert warm(cache, cache, archs=["x86-64-v3"])[0]["compiled"] == 0


def test_the_key_is_what_it_should_be(tmp_path, jobs):
    warm(tmp_path / "cache", jobs)
    compiler = os.path.realpath("/usr/bin/c++")
    notes = subprocess.run(["readelf", "-n", compiler], stdout=subprocess.PIPE, text=True).stdout
    identity = "host " + re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
    for path in entries(tmp_path / "cache"):
        job = check(path)[1]
        assert path.stem == sha(b"arrayd kernel 1\0", identity.encode(), b"\0", job).hex()


@pytest.mark.skipif(not NVRTC, reason="there is no libnvrtc here")
def test_warm_for_gpus(tmp_path):
    plant(tmp_path / "jobs", canonical("__global__ void f(float *x) { x[0] = 1; }", jail.CUDA),
          canonical("int f();", jail.HOST))
    numbers, _ = warm(tmp_path / "cache", tmp_path / "jobs", archs=["sm_80", "sm_90"])
    assert (numbers["wanted"], numbers["compiled"]) == (2, 2)
    binaries = [check(p)[0].binary for p in entries(tmp_path / "cache")]
    assert len(set(binaries)) == 2 and all(b[:4] == b"\x7fELF" for b in binaries)


def damages(data):
    """Copies of an entry with one thing wrong with each."""
    result, _ = struct.unpack_from("<QQ", data, 16)
    rng = random.Random(4)
    places = [*range(0, HEAD, 5), 16, 23, 24, 31, 32, 63, HEAD, HEAD + result - 1,
              *(rng.randrange(HEAD, HEAD + result) for _ in range(12))]
    for at in places:
        if 64 <= at < HEAD:
            continue  # of the job, which loading does not look at
        yield data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1:]
    for size in (0, 1, 15, 16, 31, HEAD - 1, HEAD, HEAD + 1, HEAD + result, len(data) - 1):
        yield data[:size]
    yield data + b"\0"
    yield bytes(len(data))


def test_damaged_entries_are_not_loaded(tmp_path):
    jobs = plant(tmp_path / "jobs", canonical("#error no\n"))
    warm(tmp_path / "cache", jobs)
    path, = entries(tmp_path / "cache")
    whole = path.read_bytes()
    for data in damages(whole):
        path.write_bytes(data)
        numbers, said = warm(tmp_path / "cache", jobs)
        assert numbers["compiled"] == 1 and numbers["there"] == 0
        assert "damaged" in said
        assert check(path)[0].kind == "wrong"
        assert entries(tmp_path / "cache") == [path]


def test_an_entry_under_another_name_is_not_loaded(tmp_path, jobs):
    cache = tmp_path / "cache"
    warm(cache, jobs)
    first, second, third = entries(cache)
    whole = first.read_bytes()
    second.write_bytes(whole)
    third.unlink()
    third.symlink_to(first)
    numbers, _ = warm(cache, jobs)
    assert numbers["compiled"] == 2 and numbers["there"] == 1
    assert first.read_bytes() == whole and check(second) and check(third)


def test_a_damaged_job_is_passed_over(tmp_path, jobs):
    for i, path in enumerate(entries(jobs)[:2]):
        data = bytearray(path.read_bytes())
        data[-1 if i else 70] ^= 1
        path.write_bytes(data)
    (jobs / ("0" * 64 + ".kernel")).write_bytes(b"")
    (jobs / "unrelated").write_bytes(b"x")
    assert warm(tmp_path / "cache", jobs)[0]["kept"] == 1


def test_without_a_folder_it_runs_on(tmp_path, jobs):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (tmp_path / "file").write_text("")
    for cache, why in (("/proc/none/of/it", "No such file"), (shared, "others can write"), (tmp_path / "file", "not a folder"),
                       ("none", "")):
        numbers, said = warm(cache, jobs)
        assert numbers["compiled"] == 3 and numbers["refused"] == 0
        assert cache == "none" or ("not kept" in said and why in said)
    assert not list(shared.iterdir())


@contextlib.contextmanager
def mounted(folder, options):
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"mode=0700,{options}", "none", folder]
    if os.geteuid() or subprocess.run(command).returncode:
        pytest.skip("this user may not mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_full_disk(tmp_path, jobs):
    with mounted(tmp_path / "small", "size=20k") as cache:  # a result and its job take 16 KiB, or one
        for _ in range(2):
            numbers, said = warm(cache, jobs)
            assert numbers["wrong"] == 1 and numbers["refused"] == 0
            assert numbers["compiled"] + numbers["there"] == 3 and numbers["compiled"] >= 1
            assert "No space left" in said
            for path in cache.iterdir():
                check(path)


def test_read_only_disk(tmp_path, jobs):
    with mounted(tmp_path / "disk", "size=1m") as cache:
        warm(cache, plant(tmp_path / "one", canonical("int f() { return 1; }")))
        subprocess.run(["mount", "-o", "remount,ro", cache], check=True)
        numbers, said = warm(cache, jobs)
        assert (numbers["compiled"], numbers["there"]) == (2, 1) and "Read-only" in said


def test_two_at_once(tmp_path, jobs):
    cache = tmp_path / "cache"
    command = [jail.BIN / "arrayctl", "warm", f"--kernels-cache={cache}", f"--from={jobs}", "--arch=x86-64-v2",
               "--arch=x86-64-v3"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        out, error = process.communicate(timeout=raw.WINDOW)
        assert process.returncode == 0 and not error and ", 0 refused" in out
    assert len(entries(cache)) == 6 and all(map(check, entries(cache)))
    assert warm(cache, jobs, archs=["x86-64-v2", "x86-64-v3"])[0]["there"] == 6


def test_killed_while_it_writes(tmp_path, jobs):
    """Whenever it is killed, there are whole entries only; what it was writing is removed in time."""
    cache = tmp_path / "cache"
    rng = random.Random(7)
    command = [jail.BIN / "arrayctl", "warm", f"--kernels-cache={cache}", f"--from={jobs}", "--arch=x86-64-v2"]
    for _ in range(8):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0.01, 0.2))
        process.kill()
        process.communicate()
        for path in entries(cache):
            check(path)
            if rng.random() < 0.5:
                path.unlink()
    stale = cache / ".new-1-1"
    stale.write_bytes(b"x")
    os.utime(stale, (0, 0))
    assert warm(cache, jobs)[0]["refused"] == 0
    assert not stale.exists()


def test_bound(tmp_path):
    """The folder stays within its size; what was not used for the longest time goes first."""
    cache = tmp_path / "cache"
    one = [plant(tmp_path / f"jobs{i}", canonical(f"int f() {{ return {i}; }}")) for i in range(8)]
    warm(cache, one[0])
    size = entries(cache)[0].stat().st_size
    limit = f"--cache-size={4 * size + size // 2}"
    for i in (1, 2, 3):
        warm(cache, one[i], limit)
    assert warm(cache, one[0], limit)[0]["there"] == 1  # used again
    for i in (4, 5, 6):
        assert warm(cache, one[i], limit)[0]["compiled"] == 1
        assert warm(cache, one[0], limit)[0]["there"] == 1
        assert sum(p.stat().st_size for p in cache.iterdir()) <= 4.5 * size
    assert warm(cache, one[1], limit)[0]["there"] == 0
    assert warm(cache, one[0], "--cache-size=1K")[0]["refused"] == 0
    assert not entries(cache)


def test_usage(tmp_path):
    for arguments, status in (([], 2), (["--help"], 0), (["--version"], 0), (["warm"], 2), (["cool"], 2),
                              (["warm", "--arch=sm_90", "--nonsense=1"], 2),
                              (["warm", "--arch=sm_90", "--compilers=x"], 2)):
        done = subprocess.run([jail.BIN / "arrayctl", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
        assert done.returncode == status and (done.stderr if status else done.stdout)
    jobs = plant(tmp_path / "jobs", canonical("int f();", jail.CUDA))
    assert "architecture" in warm(tmp_path / "cache", jobs, archs=["sm_90;"], status=1)[1]
