"""Random streams of operations, five in a hundred of them invalid, against NumPy doing the same.

The model knows every buffer by what it must hold: bytes, or the number of the operation that poisoned it."""
import random

import numpy as np
import pytest

from wire_client import Failed, fresh, view

KINDS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
         "float64", "complex64", "complex128"]
# Exact in every type, so that results are compared bit by bit.
BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "equal", "not_equal", "less", "greater_equal",
          "logical_and", "bitwise_and", "bitwise_or", "bitwise_xor"]
UNARY = ["negative", "positive", "square", "logical_not", "conjugate", "invert", "sign", "floor", "isnan"]
REDUCE = ["sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "count_nonzero"]


class Buffer:
    """A buffer of the model: its bytes, or the number of the operation whose failure it holds."""

    def __init__(self, data=None, poison=None):
        self.data, self.poison = data, poison


class Stream:
    def __init__(self, client, seed):
        self.client, self.rng, self.numpy = client, random.Random(seed), np.random.default_rng(seed)
        self.buffers, self.dead, self.pending, self.counts = {}, [], None, {}

    # ---- drawing ----

    def shape(self):
        """Mostly such as broadcast with each other."""
        if self.rng.random() < 0.2:
            return tuple(self.rng.choice([0, 1, 2, 3, 17]) for _ in range(self.rng.randrange(4)))
        shape = (4, 3, 5)[self.rng.randrange(3):]
        return tuple(n if self.rng.random() < 0.8 else 1 for n in shape)

    def array(self, kind, shape):
        """Small whole numbers: sums and products of a few are exact in every type."""
        low = 0 if np.dtype(kind).kind in "bu" else -3
        values = self.numpy.integers(low, 2 if kind == "bool" else 4, shape)
        return (values + 1j * self.numpy.integers(-3, 4, shape) if "complex" in kind else values).astype(kind)

    def view(self, buffer, kind=None):
        """A random view of a live buffer: (description, NumPy's view of the same bytes)."""
        data = self.buffers[buffer].data
        kind = kind or self.kind_of(len(data))
        flat = data[:len(data) // np.dtype(kind).itemsize * np.dtype(kind).itemsize].view(kind)
        array = flat
        for _ in range(self.rng.randrange(3)):
            choice = self.rng.randrange(4)
            if choice == 0 and array.ndim and array.size:
                axis = self.rng.randrange(array.ndim)
                start = self.rng.randrange(array.shape[axis])
                cut = [slice(None)] * array.ndim
                cut[axis] = slice(start, None, self.rng.choice([1, 1, 2, 3]))
                array = array[tuple(cut)]
            elif choice == 1 and array.ndim:
                array = np.flip(array, self.rng.randrange(array.ndim))
            elif choice == 2 and array.ndim < 4 and array.flags.c_contiguous:
                for part in (2, 3, 5):
                    if array.size % part == 0 and array.size:
                        array = array.reshape(part, -1)
                        break
            else:
                array = array.T
        if kind != "bool" and array.size > 500:
            array = array.reshape(-1)[:500] if array.flags.c_contiguous else flat[:500]
        offset = array.__array_interface__["data"][0] - flat.__array_interface__["data"][0] if array.size else 0
        strides = [0 if n == 1 else s for n, s in zip(array.shape, array.strides)]
        return view(buffer, kind, array.shape, strides, offset), array

    def kind_of(self, size):
        """A dtype that bytes of this size may be seen as. Integers are any bits; others are kept to their own."""
        return self.rng.choice([k for k in KINDS if np.dtype(k).itemsize <= max(size, 1) and np.dtype(k).kind in "iu"])

    def live(self):
        good = [b for b, x in self.buffers.items() if x.poison is None]
        return self.rng.choice(good) if good else None

    def operand(self):
        """(what is sent, the array, the buffer) of a random input. Now and then a poisoned one."""
        if self.rng.random() < 0.15:
            value = self.rng.choice([0, 1, 2, 3])
            return value, np.int64(value), None
        poisoned = [b for b, x in self.buffers.items() if x.poison is not None]
        if poisoned and self.rng.random() < 0.03:
            buffer = self.rng.choice(poisoned)
            return view(buffer, "int8", [1]), np.zeros(1, "int8"), buffer
        buffer = self.live()
        kind = self.buffers[buffer].kind
        description, array = self.view(buffer, kind)
        return description, array, buffer

    # ---- one operation after another ----

    def add(self, buffer, array=None, poison=None):
        entry = self.buffers[buffer] = Buffer(None if array is None else np.ascontiguousarray(array).reshape(-1).view("u1"),
                                              poison)
        entry.kind = None if array is None else array.dtype.name

    def fail(self):
        """The operation just sent failed, and no result carries that."""
        if self.pending is None:
            self.pending = self.client.number

    def new(self):
        kind, shape = self.rng.choice(KINDS), self.shape()
        self.add(self.client.new(kind, shape), np.zeros(shape, kind))

    def upload(self):
        array = self.array(self.rng.choice(KINDS), self.shape())
        if array.size == 0:
            return self.new()
        self.add(self.client.upload(array), array.copy())

    def free(self):
        some = self.rng.sample(list(self.buffers), min(len(self.buffers), self.rng.randrange(1, 4)))
        self.client.free(*some)
        for buffer in some:
            del self.buffers[buffer]
        self.dead += some

    def poison_of(self, buffers):
        """The failure that a result inherits: that of the first poisoned operand, in the order of the wire."""
        return next((self.buffers[b].poison for b in buffers if b is not None and self.buffers[b].poison is not None), None)

    def run(self, name, nin):
        operands = [self.operand() for _ in range(nin)]
        arrays = [array for _, array, _ in operands]
        function = getattr(np, name)
        try:
            with np.errstate(all="ignore"):
                kind = np.result_type(*arrays)
                loop = function.resolve_dtypes((*[kind] * nin, None))[0]
                if loop.kind not in "biufc" or (name in ("floor", "isnan") and loop.kind in "bc"):
                    return
                result = function(*[np.asarray(a).astype(loop) for a in arrays])
        except (TypeError, ValueError):
            return # NumPy has no such operation, or the shapes do not fit: invalid() has its own
        if not isinstance(result, np.ndarray):
            result = np.asarray(result)
        if result.size > 4000:
            return
        poison = self.poison_of([b for _, _, b in operands])
        out = self.client.id()
        self.client.ufunc(name, loop.name, [fresh(out, result.dtype.name, result.shape)], [sent for sent, _, _ in operands])
        self.add(out, result if poison is None else None, poison)
        self.counts[name] = self.counts.get(name, 0) + 1

    def in_place(self):
        """A view of a buffer, written from another operand; the two may overlap."""
        buffer = self.live()
        kind = self.buffers[buffer].kind
        if kind == "bool":
            return
        description, array = self.view(buffer, kind)
        source, values, other = self.operand()
        value = np.asarray(values)
        if value.dtype.kind == "c" and np.dtype(kind).kind != "c" or value.dtype.kind == "f" and \
                np.dtype(kind).kind in "iu" and not np.all(np.abs(value) < 100):
            return # discards parts, or values that no integer has
        try:
            wide = np.broadcast_to(value, array.shape).astype(kind, copy=True)
        except ValueError:
            return
        self.client.ufunc("copy", value.dtype.name, [description], [source])
        poison = self.poison_of([other])
        if poison is not None:
            self.buffers[buffer].poison = poison
        else:
            array[...] = wide

    def reduce(self):
        name, (description, array, buffer) = self.rng.choice(REDUCE), self.operand()
        if buffer is None:
            return
        array = np.asarray(array)
        if array.dtype.kind in "fc" and name in ("sum", "prod"):
            return # in another order: approximate
        axes = [i for i in range(array.ndim) if self.rng.random() < 0.6]
        mask = sum(1 << i for i in axes)
        if name in ("argmin", "argmax") and array.dtype.kind == "c":
            return
        loop = np.dtype(array.dtype)
        if name in ("sum", "prod") and loop.kind in "biu":
            loop = np.dtype("uint64" if loop.kind == "u" else "int64")
        rest = [n for i, n in enumerate(array.shape) if i not in axes]
        empty = any(array.shape[i] == 0 for i in axes)
        out = self.client.id()
        poison = self.poison_of([buffer])
        result = None
        if not (empty and name in ("min", "max", "argmin", "argmax")):
            front = np.moveaxis(array, axes, range(len(axes))).reshape(
                int(np.prod([array.shape[i] for i in axes])), *rest) if array.ndim else array.reshape(1)
            with np.errstate(all="ignore"):
                result = np.asarray(np.count_nonzero(front, axis=0) if name == "count_nonzero" else
                                    getattr(np, name)(front, axis=0))
        dtype = {"any": "bool", "all": "bool", "argmin": "int64", "argmax": "int64", "count_nonzero": "int64"}.get(name, loop.name)
        self.client.reduce(name, loop.name, fresh(out, dtype, rest), [description], mask)
        if poison is None and result is None:
            poison = self.client.number
        self.add(out, result if poison is None else None, poison)
        if poison is None:
            assert result.dtype == dtype and result.shape == tuple(rest), (name, array.shape, axes)

    def write(self):
        buffer = self.live()
        size = len(self.buffers[buffer].data)
        item = np.dtype(self.buffers[buffer].kind).itemsize
        if size == 0 or self.buffers[buffer].kind == "bool":
            return
        start = self.rng.randrange(size // item)
        data = self.array(self.buffers[buffer].kind, self.rng.randrange(1, size // item - start + 1)).tobytes()
        self.client.write(buffer, data, start * item)
        self.buffers[buffer].data[start * item:start * item + len(data)] = np.frombuffer(data, "u1")

    # ---- invalid ones ----

    def unknown(self):
        """The id of no buffer of this session: freed, foreign or never made."""
        return self.rng.choice([self.rng.choice(self.dead or [2**40]), 2**63 + self.rng.randrange(100), 2**64 - 1])

    def invalid(self):
        buffer, out = self.live(), self.client.id()
        size = len(self.buffers[buffer].data)
        whole = view(buffer, "int8", [size])
        bad_view = self.rng.choice([
            view(self.unknown(), "int8", [1]), view(buffer, "int8", [size + 1]), view(buffer, "int8", [1], [1], size + 5),
            view(buffer, "int16", [2], [1], 0), view(buffer, "int8", [2], [-1], 0), view(buffer, "int8", [2**40, 2**40]),
            view(buffer, "int8", [3], [2**63 - 1], 0), view(buffer, "int8", [1], [-2**63], 0)])
        choice = self.rng.randrange(9)
        if choice == 0:
            self.client.free(self.unknown())
        elif choice == 1:
            self.client.write(self.unknown(), b"1234")
        elif choice == 2:
            self.client.write(buffer, b"1234", self.rng.choice([size, size + 1, 2**64 - 2]))
        elif choice == 3:
            self.client.send([16, fresh(buffer, "int8", [1])])
        elif choice == 4:
            self.client.ufunc("copy", "int8", [bad_view], [1])
        else:
            if choice == 5:
                self.client.ufunc("negative", "int8", [fresh(out, "int8", bad_view[3])], [bad_view])
            elif choice == 6:
                self.client.ufunc("add", "int8", [fresh(out, "int8", [size + 2])], [whole, view(buffer, "int8", [2, 0, 7])])
            elif choice == 7:
                self.client.ufunc("subtract", "bool", [fresh(out, "bool", [1])], [True, False])
            else:
                self.client.reduce("sum", "int64", fresh(out, "int64", []), [whole], 1 << self.rng.randrange(1, 40))
            self.add(out, None, self.client.number)
            return
        self.fail()

    # ---- looking ----

    def ask(self, call):
        """The answer of a request that tells the pending error first."""
        if self.pending is not None:
            with pytest.raises(Failed) as caught:
                call()
            assert caught.value.number == self.pending, str(caught.value)
            self.pending = None
        return call()

    def look(self, buffer):
        entry = self.buffers[buffer]
        if entry.poison is not None:
            with pytest.raises(Failed) as caught:
                self.ask(lambda: self.client.read(view(buffer, "int8", [1, 0])))
            assert caught.value.number == entry.poison, str(caught.value)
            return
        description, array = self.view(buffer, entry.kind)
        got = self.ask(lambda: self.client.read(description))
        assert got.tobytes() == np.ascontiguousarray(array).tobytes() or np.array_equal(got, array), description

    def step(self):
        if len(self.buffers) < 5 or self.live() is None:
            return self.upload()
        draw = self.rng.random()
        if draw < 0.05:
            self.invalid()
        elif draw < 0.35:
            self.run(self.rng.choice(BINARY), 2)
        elif draw < 0.45:
            self.run(self.rng.choice(UNARY), 1)
        elif draw < 0.60:
            self.reduce()
        elif draw < 0.70:
            self.in_place()
        elif draw < 0.78:
            self.write()
        elif draw < 0.88:
            self.upload()
        elif draw < 0.90:
            self.new()
        elif draw < 0.95:
            self.look(self.rng.choice(list(self.buffers)))
        if len(self.buffers) > 60 or draw > 0.98:
            self.free()


@pytest.mark.parametrize("seed", range(4))
def test_stream(server, seed):
    with server.client() as client, server.client() as other:
        kept = other.upload(np.arange(100))
        stream = Stream(client, seed)
        for _ in range(2500):
            stream.step()
        for buffer in list(stream.buffers):
            stream.look(buffer)
        stream.ask(client.sync)
        assert client.done == client.number > 1500
        assert client.stat()["buffers"] == len(stream.buffers)
        assert np.array_equal(other.read(view(kept, "int64", [100])), np.arange(100))
