"""Counts how often programs wait for the server, and how much they send. The counts are exact, because a hidden wait is
a bug."""

import collections
import contextlib
import importlib
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import arrayd as ad
import surface
from oracle import fetch

sys.path.append(str(pathlib.Path(__file__).parent / "programs"))

# Operations that each program of programs/ sends; none of them waits. Messages that free memory are not counted: they
# come together, as many or few as time allows.
COSTS = {
    "conjugate_gradient.run": 286,
    "examples.black_scholes": 64,
    "examples.k_means": 76,
    "examples.mixture": 197,
    "game_of_life.run": 419,
    "heat_equation.run": 144,
    "logistic_regression.run": 239,
    "mandelbrot.run": 130,
    "n_body.run": 188,
    "principal_components.run": 17,
}
TRACED = """
import importlib, sys
import arrayd as ad
for name in sys.argv[1:]:
    module, _, function = name.partition(".")
    run = getattr(importlib.import_module(module), function)
    ad.sync()
    print("begin", name, file=sys.stderr, flush=True)
    result = run(ad)
    ad.sync()
    print("end", name, file=sys.stderr, flush=True)
"""


@contextlib.contextmanager
def waits(expected):
    before = ad.session_info()["round_trips"]
    yield
    assert ad.session_info()["round_trips"] - before == expected


def program(name):
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(module), function)


@pytest.fixture(scope="module")
def sent():
    """Count each kind of message that a program sends, with a sync at its end."""
    environment = {**os.environ, "AD_TRACE": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    trace = subprocess.run(
        [sys.executable, "-c", TRACED, *COSTS], env=environment, capture_output=True, text=True, check=True
    )
    counts, current = {}, None
    for line in trace.stderr.splitlines():
        if line.startswith(("begin ", "end ")):
            current = counts.setdefault(line.partition(" ")[2], collections.Counter()) if line[0] == "b" else None
        message = re.match(r"arrayd\[.*\] -> ((?:ufunc |reduce |call )?\w+)( \?)?", line)
        if message and current is not None:
            current["waits" if message[2] else message[1]] += 1
    return counts


@pytest.mark.parametrize("name", COSTS)
def test_program(name, sent):
    expected, result = program(name)(np), fetch(program(name)(ad))
    for one, other in zip(expected, result) if isinstance(expected, tuple) else [(expected, result)]:
        np.testing.assert_allclose(other, one, rtol=2e-6 if np.result_type(one) == np.float32 else 1e-7, atol=1e-11)
    kinds = sent[name]
    waited = kinds.pop("waits")
    del kinds["free"]
    count = sum(kinds.values())
    assert waited == 1, f"{name} waits for the server {waited - 1} times"
    assert count <= COSTS[name], f"{name} sends {count} operations, more than its {COSTS[name]}: {kinds}"
    assert count == COSTS[name], f"{name} sends only {count} operations: lower its row in COSTS"


# The shape of whose results depends on the data: exactly one round trip; or none, where the data are on this side.
SHAPES = set("""
    argwhere bincount compress extract flatnonzero intersect1d linalg.lstsq mask_indices nonzero place polydiv polymul
    setdiff1d setxor1d trim_zeros union1d unique unique_all unique_counts unique_inverse unique_values where
    """.split())
# Functions that must see data: to raise, or to know whether the result is a view.
ANSWERS = {"asarray_chkfinite", "real_if_close"}
# Functions that wait once for each mask.
SEVERAL = {"ix_": 2}


@pytest.mark.parametrize("name", surface.CALLS)
def test_function(name):
    """A function that gives nothing to Python does not wait, whatever its arguments."""
    most = 0
    for memory in (
        A.reshape(30, 20)[:3, :4],
        np.arange(12).reshape(3, 4) % 5,
        np.eye(3) > 0,
        np.arange(5.0),
        np.float64(2),
    ):
        a = ad.asarray(memory)
        for text in surface.CALLS[name]:
            before = ad.session_info()["round_trips"]
            with contextlib.suppress(Exception):
                surface.body(name, text)(ad, a)
            waited = ad.session_info()["round_trips"] - before
            assert waited <= (
                SEVERAL.get(name, 1) if name in SHAPES | ANSWERS | {*SEVERAL} else 0
            ), f"{text} of {memory.dtype} waits {waited} times"
            most = max(most, waited)
    with contextlib.suppress(Exception):  # what failed on purpose
        ad.sync()
    assert most or name not in SHAPES | ANSWERS, f"{name} never waits: take it out of the list"


A = np.random.default_rng(2).normal(size=(30, 20))
NONE = {
    "views": lambda a: a[1:-1, ::2].T.reshape(-1)[::-1],
    "softmax": lambda a: ad.exp(a - a.max(1, keepdims=True)),
    "statistics": lambda a: (a.mean(), a.std(0), ad.median(a), ad.quantile(a, [0.1, 0.9]), ad.cov(a), ad.corrcoef(a)),
    "sorting": lambda a: (
        ad.sort(a),
        ad.argsort(a),
        ad.lexsort((a[0], a[1])),
        ad.searchsorted(a[0], a),
        ad.partition(a, 3),
    ),
    "joining": lambda a: (
        ad.concatenate([a, a]),
        ad.stack([a, a]),
        ad.tile(a, 2),
        ad.roll(a, 3),
        ad.pad(a, 2),
        ad.repeat(a, 2),
    ),
    "products": lambda a: (a @ a.T, ad.einsum("ij,kj->ik", a, a), ad.tensordot(a, a), ad.outer(a, a), ad.kron(a, a)),
    "choosing": lambda a: (
        ad.where(a > 0, a, 0),
        ad.take(a, [0, 1]),
        ad.take_along_axis(a, a.argsort(1), 1),
        a[[1, 2]],
        ad.clip(a, -1, 1),
        ad.select([a > 0], [a]),
        ad.diagonal(a),
        ad.tril(a),
    ),
    "masked assignment": lambda a: a.copy().__setitem__(a > 0, 0),
    "histogram": lambda a: ad.histogram(a, 12),
    "running": lambda a: (ad.cumsum(a), ad.diff(a), ad.gradient(a), ad.interp(a, a[0], a[0]), ad.convolve(a[0], a[1])),
    "tests": lambda a: (ad.allclose(a, a), ad.array_equal(a, a), ad.isin(a, a[0]), ad.any(a), ad.isclose(a, a)),
    "new": lambda a: (
        ad.arange(9),
        ad.linspace(0, 1, 5),
        ad.eye(4),
        ad.full((2, 3), 5),
        ad.mgrid[0:3, 0:4],
        ad.asarray(A),
    ),
    "in place": lambda a: (a.__iadd__(1), a.sort(), ad.put(a, [1, 2], 5), ad.fill_diagonal(a, 3), ad.copyto(a, 0)),
}


@pytest.mark.parametrize("name", NONE)
def test_no_wait(name):
    a = ad.asarray(A)
    with waits(0):
        NONE[name](a)
    ad.sync()


ONE = {
    "get": lambda a: a.get(),
    "float": lambda a: float(a.sum()),
    "bool": lambda a: bool((a > 9).any()),
    "item": lambda a: a[0, 0].item(),
    "nonzero": lambda a: ad.nonzero(a > 0),
    "mask": lambda a: a[a > 0],
    "unique": lambda a: ad.unique(a),
    "repr": repr,
    "bincount": lambda a: ad.bincount(ad.arange(5)),
    "sync": lambda a: ad.sync(),
    "extract": lambda a: ad.extract(a > 0, a),
    "where": lambda a: ad.where(a > 0),
    "tolist": lambda a: a.tolist(),
    "argwhere": lambda a: ad.argwhere(a > 0),
}


@pytest.mark.parametrize("name", ONE)
def test_one_wait(name):
    a = ad.asarray(A)
    with waits(1):
        ONE[name](a)


B = np.arange(12.0).reshape(3, 4)
FAR = {
    "take": lambda a, far: ad.take(a, far),
    "take along an axis": lambda a, far: ad.take(a, far, 1),
    "take_along_axis": lambda a, far: ad.take_along_axis(a, far[:, None] * ad.ones((1, 4), int), 0),
    "put_along_axis": lambda a, far: ad.put_along_axis(a, far[:, None] * ad.ones((1, 4), int), 0, 0),
    "get": lambda a, far: a[far],
    "get by two": lambda a, far: a[far, ad.zeros(2, int)],
    "get beside a slice": lambda a, far: a[1:, far],
    "set": lambda a, far: a.__setitem__(far, 1),
    "set from an array": lambda a, far: a.__setitem__((slice(None), far), a[:, :2]),
    "in place": lambda a, far: a.__setitem__(far, a[far] + 1),
    "put": lambda a, far: ad.put(a, far, 1),
    "put into a view": lambda a, far: ad.put(a.T, far, [1, 2]),
    "put into every second": lambda a, far: ad.put(a[:, ::2], far, 1),
    "choose": lambda a, far: ad.choose(far, [1, 2, 3]),
    "unravel_index": lambda a, far: ad.unravel_index(far, (3, 4))[1],
    "unravel_index by columns": lambda a, far: ad.unravel_index(far, (3, 4), "F")[0],
    "ravel_multi_index": lambda a, far: ad.ravel_multi_index((ad.zeros(2, int), far), (3, 4)),
    "searchsorted": lambda a, far: ad.searchsorted(a[0, :2], 1, sorter=far),
    "add.at": lambda a, far: ad.add.at(a, far, 1),
    "quantile": lambda a, far: ad.quantile(a, far / 10 + 1),
    "compress": lambda a, far: ad.compress(ad.ones(13, bool), a),
}


@pytest.mark.parametrize("far", [[0, 12], [1, -13], [2**62, 0]], ids=str)
@pytest.mark.parametrize("name", FAR)
def test_indices_out_of_bounds(name, far):
    """Indices never wrap. The next sync raises, or what is computed or changed with them cannot be read."""
    a = ad.asarray(B)
    with pytest.raises(IndexError):
        result = FAR[name](a, ad.asarray(far))
        ad.sync()
        (a if result is None else result).get()


def test_an_array_that_an_index_failed_on_stays():
    a = ad.asarray(B)
    with pytest.raises(IndexError):
        a[ad.asarray([0, 99])] = -1
        ad.sync()
    np.testing.assert_array_equal(a.get(), B)
