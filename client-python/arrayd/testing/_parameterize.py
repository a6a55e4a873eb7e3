"""Test classes with attributes of several values."""
import itertools
import sys
import types
import unittest


class _Bundle:
    """The result of parameterize for a unittest.TestCase: the classes that it has become."""

    def __init__(self, cases):
        self.cases = cases


def parameterize(*params, **kwargs):
    """A decorator that makes of a test class one for each of several sets of attributes. Of a unittest.TestCase it makes
    subclasses in its module, of another class one whose tests pytest runs for each.

    Parameters: params: dicts of attributes. kwargs: _ids=False, for pytest: numbers instead of names.
    Returns: decorator.
    Raises: RuntimeError without pytest; TypeError for other options.
    Source: cupy.testing.parameterize
    """
    def decorator(cls):
        if isinstance(cls, _Bundle):
            return _Bundle([case for one in cls.cases for case in _subclasses(one, params)])
        if issubclass(cls, unittest.TestCase):
            return _Bundle(_subclasses(cls, params))
        return _for_pytest(cls, params, **kwargs)
    return decorator


def product(parameter):
    """All combinations of attributes' values.

    Parameters: parameter: dict of lists.
    Returns: list of dicts.
    Source: cupy.testing.product
    """
    keys = sorted(parameter)
    return [dict(zip(keys, values)) for values in itertools.product(*(parameter[key] for key in keys))]


def product_dict(*parameters):
    """All combinations of one dict of each list.

    Parameters: parameters: lists of dicts.
    Returns: list of dicts.
    Source: cupy.testing.product_dict
    """
    return [{key: value for one in dicts for key, value in one.items()} for dicts in itertools.product(*parameters)]


def _label(i, param):
    """A name for a set of attributes, not too long."""
    texts = []
    for key, value in sorted(param.items()):
        name = getattr(value, "__name__", None)
        text = name if isinstance(name, str) else repr(value)
        texts.append(f"{key}={text if len(text) <= 100 else text[:48] + '...' + text[-48:]}")
    return f"_param_{i}_{{{', '.join(texts)}}}"


def _attribute(value):
    """A value as a class attribute: a function stays one, instead of becoming a method."""
    return staticmethod(value) if isinstance(value, types.FunctionType) else value


def _subclasses(cls, params):
    module = sys.modules[cls.__module__]
    cases = []
    for i, param in enumerate(params):
        name = cls.__name__ + _label(i, param)
        case = type(name, (cls,), {"__module__": cls.__module__, **{k: _attribute(v) for k, v in param.items()}})
        setattr(module, name, case)
        cases.append(case)
    if vars(module).get(cls.__name__) is cls:  # made by another parameterize
        delattr(module, cls.__name__)
    return cases


def _for_pytest(cls, params, _ids=True):
    from ._marks import _pytest
    pytest = _pytest()
    if getattr(cls, "_arrayd_parameterized", False):
        raise RuntimeError("do not `@testing.parameterize` twice")

    class Mixin:
        _arrayd_parameterized = True

        @pytest.fixture(autouse=True)
        def _arrayd_parameters(self, _arrayd_param):
            self.__dict__.update(_arrayd_param)

    made = type(cls.__name__, (Mixin, cls), {"__module__": cls.__module__, "__doc__": cls.__doc__})
    return pytest.mark.parametrize("_arrayd_param", [
        pytest.param(param, id=_label(i, param) if _ids else str(i)) for i, param in enumerate(params)])(made)
