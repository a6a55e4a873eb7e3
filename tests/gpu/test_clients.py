"""Several client processes on one GPU: results, memory, and what happens when the device is lost."""
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import arrayd as ad

EXAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "examples"
ARGUMENTS = {"kmeans": ["--points", "200000"], "gaussian_mixture": ["--points", "100000"],
             "option_prices": ["--options", "500000", "--paths", "4000000"]}


def start(name, library="arrayd", seed=1, url=None):
    environment = {**os.environ, **({"ARRAYD_URL": url} if url else {})}
    return subprocess.Popen([sys.executable, EXAMPLES / f"{name}.py", "--library", library, "--seed", str(seed),
                             *ARGUMENTS[name]], stdout=subprocess.PIPE, text=True, env=environment)


def figures(process):
    """The numbers that an example prints, without its time."""
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return [float(x) for x in re.findall(r"-?\d+\.\d+", out)][:-1]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_example_from_eight_clients_at_once(name):
    seeds = range(1, 9)
    running = [start(name, seed=seed) for seed in seeds]
    for seed, process in zip(seeds, running):
        ours, numpys = figures(process), figures(start(name, "numpy", seed))
        if name == "option_prices":
            calls, simulated, error, exact = ours
            np.testing.assert_allclose([calls, exact], [numpys[0], numpys[3]], rtol=1e-5)
            assert abs(simulated - exact) < 5 * error
        else:
            np.testing.assert_allclose(ours, numpys, rtol=1e-3)


def test_a_program_that_finds_no_server_gets_one_with_the_gpu(tmp_path):
    if os.path.exists("/run/arrayd/arrayd.sock"):
        pytest.skip("a program finds a server here")
    code = ("import arrayd as ad; i = ad.session_info(); print(i['url'], i['backend'], i['device_name']);"
            "print(float((ad.arange(1000.0) + 1).sum()))")
    kept = {k: v for k, v in os.environ.items() if k not in ("ARRAYD_URL", "ARRAYD_BACKEND")}
    def say(**more):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                              env={**kept, "XDG_RUNTIME_DIR": str(tmp_path), **more})

    done = say()
    assert done.stdout == f"embedded:auto cuda {ad.session_info()['device_name']}\n500500.0\n" and not done.stderr
    hidden = say(CUDA_VISIBLE_DEVICES="")
    assert hidden.stdout.startswith("embedded:auto cpu") and hidden.stderr.count("cuda cannot be used") == 1, hidden.stderr
    asked = say(CUDA_VISIBLE_DEVICES="", ARRAYD_URL="embedded:cuda")
    assert not asked.stdout and "ConnectionError: embedded:cuda" in asked.stderr


CLIENT = """
import arrayd as ad, sys
x = ad.arange(16, dtype="float32")
print(float((x + x).sum()), flush=True)
sys.stdin.readline()
"""


def test_a_further_client_takes_no_device_memory(own_server):
    """A client takes none but its share of the slab of 2 MiB that the first arrays of small clients lie in."""
    _, url = own_server()
    device = ad.cuda.Device(0)
    clients, free = [], []
    for _ in range(9):
        client = subprocess.Popen([sys.executable, "-c", CLIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "ARRAYD_URL": url})
        assert float(client.stdout.readline()) == 240
        clients.append(client)
        free.append(device.mem_info[0])
    for client in clients:
        client.communicate("\n")
    each = (free[0] - free[-1]) / 8
    print(f"device memory of each further client: {each / 2**20:.2f} MiB")
    assert each <= 2 << 20


DECOMPOSE = """
import arrayd as ad
a = ad.eye(3) * 2
print(float(ad.linalg.eigvalsh(a).sum()), float((a @ a).sum()), float(ad.linalg.svd(a)[1].sum()))
"""


def test_libraries_outlive_the_streams_of_clients_that_have_gone():
    """A handle that was last used on a stream that is closed since: solve and inv failed for everybody after that."""
    for _ in range(3):
        out = subprocess.run([sys.executable, "-c", DECOMPOSE], check=True, capture_output=True, text=True,
                             timeout=60).stdout
        assert out.split() == ["6.0", "12.0", "6.0"]
        a = ad.asarray(np.random.default_rng(1).random((5, 5)) + 5 * np.eye(5))
        np.testing.assert_allclose((ad.linalg.inv(a) @ a).get(), np.eye(5), atol=1e-12)
        np.testing.assert_allclose((a @ ad.linalg.solve(a, a)).get(), a.get(), atol=1e-12)
