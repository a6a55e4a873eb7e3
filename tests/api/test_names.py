"""The standard's names are all there, take the standard's arguments, and say what the standard has them say."""
import inspect
import itertools
import subprocess
import sys

import numpy as np
import pytest
from standard import DTYPES, VERSION, find, name_of, names, xs

import arrayd as ad

SPACES = {"": xs, "linalg.": xs.linalg, "fft.": xs.fft}
KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
FUNCTIONS = [prefix + name for prefix, space in SPACES.items() for name in names(space)
             if callable(getattr(space, name)) and not isinstance(getattr(space, name), type)]
# Attributes of the array object. The reflected and in-place forms of the operators are tested with the operators.
ATTRIBUTES = "dtype device mT ndim shape size T __array_namespace__ __dlpack__ __dlpack_device__ to_device".split()


def test_every_name_is_there():
    missing = [prefix + name for prefix, space in SPACES.items() for name in names(space)
               if not hasattr(find(ad, prefix[:-1]) if prefix else ad, name)]
    assert missing == []
    its = xs.asarray(1)
    dunder = [name for name in dir(type(its)) if name.startswith("__") and callable(getattr(its, name))]
    assert [name for name in [*ATTRIBUTES, *dunder] if not hasattr(ad.ndarray, name) and name != "__buffer__"] == []
    assert len(FUNCTIONS) > 170 and len(dunder) > 60


def accepts(function, wanted):
    """Yield what keeps a function from being called in all ways that a signature of the standard allows."""
    offered = list(inspect.signature(function).parameters.values())
    by_name = {each.name: each for each in offered}
    positional = [each for each in offered if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    several = any(each.kind == each.VAR_POSITIONAL for each in offered)
    for place, each in enumerate(wanted.parameters.values()):
        mine = by_name.get(each.name)
        if each.kind != each.KEYWORD_ONLY and place >= len(positional) and not several:
            yield f"{each.name} is not taken at place {place}"
        if each.kind == each.POSITIONAL_OR_KEYWORD and (mine is None or mine.kind == mine.POSITIONAL_ONLY):
            yield f"{each.name} is not taken by name"
        if each.kind == each.KEYWORD_ONLY and (mine is None or mine.kind not in (mine.KEYWORD_ONLY,
                                                                                mine.POSITIONAL_OR_KEYWORD)):
            yield f"{each.name} is not taken by name"
        if each.default is not each.empty and mine is not None and mine.default is mine.empty and \
                each.kind != each.POSITIONAL_ONLY:
            yield f"{each.name} has no default"
    for each in positional[len(wanted.parameters):]:
        if each.default is each.empty and not several:
            yield f"{each.name} is needed"


def test_signatures():
    faults = {name: list(accepts(find(ad, name), inspect.signature(find(xs, name)))) for name in FUNCTIONS}
    assert {name: fault for name, fault in faults.items() if fault} == {}


def test_the_check_of_signatures_finds_faults():
    wanted = inspect.signature(lambda x, /, low=None, *, axis=-1: 0)
    assert list(accepts(lambda a, low=1, axis=0: 0, wanted)) == []
    assert list(accepts(lambda *args, axis=0, low=0: 0, wanted)) == []
    assert list(accepts(lambda a: 0, wanted)) == ["low is not taken at place 1", "low is not taken by name",
                                                  "axis is not taken by name"]
    assert list(accepts(lambda a, low, b, c, *, axis=0: 0, wanted)) == ["low has no default", "c is needed"]


def test_namespace():
    x = ad.arange(3)
    assert x.__array_namespace__() is ad and x.__array_namespace__(api_version=None) is ad
    for version in ("2021.12", "2022.12", "2023.12", VERSION):
        assert x.__array_namespace__(api_version=version) is ad
    for version in ("2019.12", "2077.12", 2024):
        with pytest.raises(ValueError, match="api_version"):
            x.__array_namespace__(api_version=version)
    assert ad.__array_api_version__ == VERSION == xs.__array_api_version__
    assert (ad.newaxis, ad.e, ad.pi, ad.inf) == (None, np.e, np.pi, np.inf) and ad.nan != ad.nan


def test_inspection():
    info, oracle = ad.__array_namespace_info__(), xs.__array_namespace_info__()
    assert set(info.capabilities()) == set(oracle.capabilities())
    assert info.capabilities()["boolean indexing"] is info.capabilities()["data-dependent shapes"] is True
    deepest = info.capabilities()["max dimensions"]
    assert ad.ones((1,) * deepest).ndim == deepest
    with pytest.raises(ValueError):
        ad.ones((1,) * (deepest + 1))
    device = info.default_device()
    assert device == ad.arange(3).device and device in info.devices()
    assert len(info.devices()) == ad.session_info()["devices"] == len(set(info.devices()))
    for kind in [None, *KINDS, *itertools.combinations(KINDS, 2), ()]:
        for where in (None, device):
            mine, its = info.dtypes(kind=kind, device=where), oracle.dtypes(kind=kind)
            assert {name: name_of(dtype) for name, dtype in mine.items()} == {name: name for name in its}, kind
            assert all(ad.zeros(1, dtype=dtype).dtype == dtype for dtype in mine.values())
    defaults = oracle.default_dtypes()
    assert {k: name_of(d) for k, d in info.default_dtypes(device=device).items()} == \
        {k: name_of(d) for k, d in defaults.items()}
    assert [ad.asarray(value).dtype for value in (1.0, 1j, 1)] == list(info.default_dtypes().values())[:3]
    for kind in ("float", 3, ["bool"], ("bool", "integer")):
        with pytest.raises(ValueError, match="kind"):
            info.dtypes(kind=kind)
    for ask in (info.dtypes, info.default_dtypes):
        with pytest.raises(ValueError, match="device"):
            ask(device="cpu")


MAKERS = {
    "arange": (5,), "asarray": ([1, 2],), "empty": ((2,),), "eye": (3,), "full": ((2,), 7), "linspace": (0, 1, 5),
    "ones": ((2,),), "zeros": ((2,),), "empty_like": (np.ones(3),), "full_like": (np.ones(3), 2),
    "ones_like": (np.ones(3),), "zeros_like": (np.ones(3),), "fft.fftfreq": (5,), "fft.rfftfreq": (5,),
    "from_dlpack": (np.ones(3),), "astype": (np.ones(3), np.float32)}


@pytest.mark.parametrize("name", MAKERS)
def test_devices_of_new_arrays(name):
    args = [ad.asarray(each) if isinstance(each, np.ndarray) and name != "from_dlpack" else each
            for each in MAKERS[name]]
    plain = find(ad, name)(*args)
    for device in [*ad.__array_namespace_info__().devices(), 0]:
        made = find(ad, name)(*args, device=device)
        assert made.device == ad.cuda.Device(device) and made.shape == plain.shape and made.dtype == plain.dtype
        if not name.startswith("empty"):
            np.testing.assert_array_equal(made.get(), plain.get())
        assert ad.cuda.Device() == plain.device
    for wrong in ("cpu", "cuda", 10**6, -1, xs.asarray(1).device):
        with pytest.raises(ValueError, match="device"):
            find(ad, name)(*args, device=wrong)
    if name != "astype":  # the type of the elements is as well what it is without a device
        assert find(ad, name)(*args, device=None).dtype == plain.dtype


def test_moving_between_devices():
    x = ad.arange(6.0).reshape(2, 3)
    for device in ad.__array_namespace_info__().devices():
        moved = x.to_device(device)
        assert moved.device == device and (moved is x) == (device == x.device)
        np.testing.assert_array_equal(moved.get(), x.get())
    assert x.to_device(x.device, stream=ad.cuda.Stream()) is x and x.to_device(0) is x
    with pytest.raises(ValueError, match="device"):
        x.to_device("cpu")
    with pytest.raises(TypeError, match="stream"):
        x.to_device(x.device, stream=7)
    assert ad.astype(x, ad.float64, copy=False, device=x.device) is x
    assert ad.astype(x, ad.float64, device=x.device) is not x
    assert ad.asarray(x, device=x.device) is x and ad.asarray(x, device=x.device, copy=True) is not x


def test_a_device_needs_no_import():
    assert type(ad.zeros(2).device).__name__ == "Device" and ad.zeros(2).device == ad.ones(3).device
    assert {ad.zeros(2).device: 1}[ad.ones(1).device] == 1


def test_type_functions():
    for name in DTYPES:
        mine, its = getattr(ad, name), getattr(xs, name)
        assert [ad.isdtype(np.dtype(mine), kind) for kind in KINDS] == [xs.isdtype(its, kind) for kind in KINDS]
        assert ad.isdtype(mine, ("bool", mine)) and ad.isdtype(mine, mine)
        for other in DTYPES:
            its_other, mine_other = getattr(xs, other), getattr(ad, other)
            for one, another in ((mine, mine_other), (ad.ones(1, dtype=mine), mine_other),
                                 (ad.ones(1, dtype=mine), ad.ones((2, 1), dtype=mine_other))):
                try:
                    wanted = xs.result_type(its, its_other)
                except TypeError:  # a kind with another: NumPy's promotion goes on
                    wanted = np.result_type(mine, mine_other)
                assert ad.result_type(one, another) == name_of(wanted)
            assert ad.can_cast(mine, mine_other) == np.can_cast(mine, mine_other)
            assert ad.can_cast(ad.ones(1, dtype=mine), mine_other) == np.can_cast(mine, mine_other)
    for name in ("float32", "float64", "complex64", "complex128"):
        for what in (getattr(ad, name), ad.ones(2, dtype=name)):
            mine, its = ad.finfo(what), xs.finfo(getattr(xs, name))
            for field in ("bits", "eps", "max", "min", "smallest_normal"):
                assert getattr(mine, field) == getattr(its, field), (name, field)
            assert mine.dtype == name_of(its.dtype)
    for name in DTYPES[1:9]:
        for what in (getattr(ad, name), ad.ones(2, dtype=name)):
            mine, its = ad.iinfo(what), xs.iinfo(getattr(xs, name))
            assert (mine.bits, mine.max, mine.min, mine.dtype) == (its.bits, its.max, its.min, name_of(its.dtype))
    for mixed, wanted in (((ad.float32, 1j), "complex64"), ((ad.int8, 1), "int8"), ((ad.ones(1, dtype="int8"), 1.5),
                                                                                    "float64")):
        assert ad.result_type(*mixed) == wanted


def test_the_import_takes_little():
    """NumPy has imported all modules of others that the import of arrayd and the first result take. A module more, such as
    threading, would take half a millisecond of each program's start."""
    code = ("import sys, numpy; before = set(sys.modules); import arrayd as ad; assert float(ad.ones(3).sum()) == 3;"
            "print(*sorted(name for name in set(sys.modules) - before if name.partition('.')[0] != 'arrayd'))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
