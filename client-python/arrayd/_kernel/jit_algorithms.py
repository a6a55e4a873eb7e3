"""thrust's algorithms in translated functions: each thread runs one by itself."""
import numpy as np

from .jit_expressions import Builtin
from .jit_iterators import element_type
from .jit_values import Constant, Iterator, Pair, Scalar, Value, as_scalar, as_value, convert, default, is_number
from .types import c_name


class Policy:
    """Where an algorithm runs."""

    def __init__(self, name):
        self.__name__ = name
        self.__doc__ = f"thrust::{name}: each thread that calls an algorithm runs it by itself."

    def __repr__(self):
        return f"<arrayd.cupyx.jit thrust.{self.__name__}>"


device, seq = Policy("device"), Policy("seq")

# By name: what is done, and the ways to call it: parameters -> result. Of a parameter's name, the letter behind the dot
# says what it is: i an iterator that is read, o one whose elements are written, v a number. A result is bool, int64,
# element (a number of the first iterator's type), a parameter (of its type), or two of these.
_RANGE, _SECOND = "first.i last.i", "first2.i last2.i"
_SETS = f"{_RANGE} {_SECOND} out.o -> out"
_KEYED_SETS = f"{_RANGE} {_SECOND} values.i values2.i keys_out.o out.o -> keys_out out"
_ALGORITHMS = {
    "adjacent_difference": ("The differences of neighbours, behind the first element.", f"{_RANGE} out.o -> out"),
    "binary_search": ("Whether sorted elements have a value, or each of several.", f"{_RANGE} value.v -> bool",
                      f"{_RANGE} values.i values_last.i out.o -> out"),
    "copy": ("Copy elements.", f"{_RANGE} out.o -> out"),
    "count": ("How many elements are equal to a value.", f"{_RANGE} value.v -> int64"),
    "equal": ("Whether two sequences have equal elements.", f"{_RANGE} first2.i -> bool"),
    "equal_range": ("The first and behind the last place where sorted elements are equal to a value.",
                    f"{_RANGE} value.v -> first first"),
    "exclusive_scan": ("The sums of all elements before each, from init or 0 on.", f"{_RANGE} out.o -> out",
                       f"{_RANGE} out.o init.v -> out"),
    "exclusive_scan_by_key": ("exclusive_scan of the values of each run of equal keys.",
                              f"{_RANGE} values.i out.o -> out", f"{_RANGE} values.i out.o init.v -> out"),
    "fill": ("Set elements to a value.", "first.o last.o value.v ->"),
    "find": ("The first place that has a value, or last.", f"{_RANGE} value.v -> first"),
    "gather": ("Copy the elements that a map of integers names.", f"{_RANGE} values.i out.o -> out"),
    "inclusive_scan": ("The sums of all elements up to each.", f"{_RANGE} out.o -> out"),
    "inclusive_scan_by_key": ("inclusive_scan of the values of each run of equal keys.",
                              f"{_RANGE} values.i out.o -> out"),
    "inner_product": ("init, and the sum of the products of two sequences.", f"{_RANGE} first2.i init.v -> init"),
    "is_sorted": ("Whether no element is less than that before.", f"{_RANGE} -> bool"),
    "is_sorted_until": ("The first place whose element is less than that before, or last.", f"{_RANGE} -> first"),
    "lower_bound": ("The first place whose element is not less than a value, or the number of each of several.",
                    f"{_RANGE} value.v -> first", f"{_RANGE} values.i values_last.i out.o -> out"),
    "max_element": ("The place of the greatest element.", f"{_RANGE} -> first"),
    "merge": ("Two sorted sequences as one.", _SETS),
    "merge_by_key": ("Two sequences with values, sorted by key, as one.", _KEYED_SETS),
    "min_element": ("The place of the least element.", f"{_RANGE} -> first"),
    "minmax_element": ("The places of the least and of the greatest element.", f"{_RANGE} -> first first"),
    "mismatch": ("The first places at which two sequences differ.", f"{_RANGE} first2.i -> first first2"),
    "reduce": ("The sum of elements, and of init.", f"{_RANGE} -> element", f"{_RANGE} init.v -> init"),
    "reduce_by_key": ("The keys of runs of equal keys, and the sums of their values.",
                      f"{_RANGE} values.i keys_out.o out.o -> keys_out out"),
    "remove": ("Move the elements that are not equal to a value to the front.", "first.o last.o value.v -> first"),
    "remove_copy": ("Copy the elements that are not equal to a value.", f"{_RANGE} out.o value.v -> out"),
    "replace": ("Set elements that have a value to another.", "first.o last.o old.v value.v ->"),
    "replace_copy": ("Copy elements, and another value for those that have one.",
                     f"{_RANGE} out.o old.v value.v -> out"),
    "reverse": ("Turn the order of elements around.", "first.o last.o ->"),
    "reverse_copy": ("Copy elements in the opposite order.", f"{_RANGE} out.o -> out"),
    "scatter": ("Copy elements to the places that a map of integers names.", f"{_RANGE} map.i out.o ->"),
    "sequence": ("Set elements to 0, 1, 2, ...; or to init, init + step, ...", "first.o last.o ->",
                 "first.o last.o init.v ->", "first.o last.o init.v step.v ->"),
    "set_difference": ("What of a sorted sequence is not in another.", _SETS),
    "set_difference_by_key": ("set_difference of keys, with their values.", _KEYED_SETS),
    "set_intersection": ("What two sorted sequences both have.", _SETS),
    "set_intersection_by_key": ("set_intersection of keys, with the values of the first.",
                                f"{_RANGE} {_SECOND} values.i keys_out.o out.o -> keys_out out"),
    "set_symmetric_difference": ("What only one of two sorted sequences has.", _SETS),
    "set_symmetric_difference_by_key": ("set_symmetric_difference of keys, with their values.", _KEYED_SETS),
    "set_union": ("What one of two sorted sequences has, or both.", _SETS),
    "set_union_by_key": ("set_union of keys, with their values.", _KEYED_SETS),
    "sort": ("Sort elements.", "first.o last.o ->"),
    "sort_by_key": ("Sort keys, and their values with them.", "first.o last.o values.o ->"),
    "stable_sort": ("Sort elements; equal ones keep their order.", "first.o last.o ->"),
    "stable_sort_by_key": ("Sort keys, and their values with them; equal ones keep their order.",
                           "first.o last.o values.o ->"),
    "swap_ranges": ("Exchange the elements of two sequences.", "first.o last.o first2.o -> first2"),
    "unique": ("Move the first of each run of equal elements to the front.", "first.o last.o -> first"),
    "unique_by_key": ("Move the first of each run of equal keys, and its value, to the front.",
                      "first.o last.o values.o -> first values"),
    "unique_by_key_copy": ("Copy the first of each run of equal keys, and its value.",
                           f"{_RANGE} values.i keys_out.o out.o -> keys_out out"),
    "unique_copy": ("Copy the first of each run of equal elements.", f"{_RANGE} out.o -> out"),
    "upper_bound": ("The first place whose element is greater than a value, or the number of each of several.",
                    f"{_RANGE} value.v -> first", f"{_RANGE} values.i values_last.i out.o -> out"),
}
_DOC = """{what}

Parameters: exec_policy: thrust.device or thrust.seq: each thread that calls it does it by itself. args: {ways}.
Returns: {result}.
Raises: RuntimeError outside of a kernel. Translating it: TypeError.
Source: cupyx.jit.thrust.{name}
"""


def _ways_of(texts):
    """The ways to call an algorithm: by how many arguments there are, [(name, letter)] and the names of the result."""
    ways = {}
    for text in texts:
        parameters, _, result = text.partition("->")
        names = [tuple(each.split(".")) for each in parameters.split()]
        ways[len(names)] = names, result.split()
    return ways


def _number(value, dtype):
    """A number beside elements of a type, which one of Python's takes where it can hold it."""
    if not is_number(value):
        return as_scalar(value)
    own = default(value.value)
    kind = dtype if own == bool or np.result_type(own, dtype).kind == dtype.kind else own
    return Value(convert(value, kind), Scalar(kind))


def _type_of(name, values, dtype):
    if name in ("bool", "int64"):
        return Scalar(name)
    return Scalar(dtype) if name == "element" else values[name].type


def _given(way, arguments):
    """The arguments by name, and the type of the elements."""
    dtype = element_type(arguments[0])
    values = {}
    for (name, letter), value in zip(way, arguments):
        if letter == "v":
            values[name] = _number(value, dtype)
            continue
        element_type(value)
        values[name] = value
    return values, dtype


def _algorithm(name):
    what, *texts = _ALGORITHMS[name]
    ways = _ways_of(texts)

    def translate(translator, exec_policy, *args):
        if not (isinstance(exec_policy, Constant) and isinstance(exec_policy.value, Policy)):
            raise TypeError(f"the first argument of thrust.{name} must be thrust.device or thrust.seq")
        if len(args) not in ways:
            raise TypeError(f"thrust.{name} takes {' or '.join(map(str, ways))} arguments behind the policy, "
                            f"not {len(args)}")
        way, result = ways[len(args)]
        values, dtype = _given(way, args)
        for parameter, letter in way:
            if letter == "o":
                translator.written |= values[parameter].roots
        roots = frozenset().union(*(each.roots for each in values.values()))
        kinds = [_type_of(each, values, dtype) for each in result]
        code = f"ad_algorithm::{name}({', '.join(each.code for each in values.values())})"
        if not kinds:
            return Value(code, None)
        return Value(code, kinds[0] if len(kinds) == 1 else Pair(kinds), roots)

    told = "; or ".join(", ".join(each for each, _ in names) for names, _ in ways.values())
    results = {"": "None", "bool": "bool", "int64": "int64", "element": "a number"}
    result = ways[min(ways)][1]
    returns = results.get(" ".join(result), "an iterator" if len(result) == 1 else "two iterators")
    return Builtin(name, _DOC.format(what=what, ways=told, result=returns, name=name), translate)


def _generator(name, what, counts):
    def translate(translator, value):
        value = as_value(value)
        as_scalar(value)
        kind = f"ad_algorithm::generated<{c_name(value.type.dtype)}, {str(counts).lower()}>"
        return Value(f"ad_algorithm::{name}({value.code})", Iterator(value.type.dtype, kind))

    doc = f"""{what}

Parameters: value: a number.
Returns: an iterator.
Raises: RuntimeError outside of a kernel.
Source: cupyx.jit.thrust.{name}
"""
    return Builtin(name, doc, translate)


algorithms = {name: _algorithm(name) for name in _ALGORITHMS}
algorithms["make_constant_iterator"] = _generator("make_constant_iterator", "An iterator over one value.", False)
algorithms["make_counting_iterator"] = _generator("make_counting_iterator", "An iterator that counts on from a value.",
                                                  True)
