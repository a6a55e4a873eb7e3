"""Chains on the backend itself, without a worker. One kernel for a chain gives bit for bit what its operations give one
after the other, whatever the rows, types and layouts."""
import ctypes
import time

import numpy
import pytest
from backend_table import Run, load
from chain_table import (CODE, DTYPES, INPUT, KINDS, NODE, REDUCTIONS, REQ_REDUCE, REQ_UFUNC, SCALAR, SIZES, UFUNCS, Chain,
                         Compiler, Scalar, Source, View, dims, fusable, nvrtc, operation, storage)

MIB = 1 << 20
WORKSPACE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)


cuda, library = load(), nvrtc()
pytestmark = [pytest.mark.skipif(cuda is None, reason="no GPU"), pytest.mark.skipif(library is None, reason="no libnvrtc")]


class Gpu:
    """A device with a compiler, and memory that is handed out from the front and forgotten by clear()."""

    def __init__(self, size, delay=0):
        self.compiler = Compiler(library, delay)
        self.device = cuda.open(compiler=ctypes.addressof(self.compiler))
        self.stream = cuda.stream(self.device)
        self.slab = cuda.slab(self.device, size)
        self.used = 0
        self.workspace = WORKSPACE(lambda _, n: self.take(n))
        self.run = Run(workspace=ctypes.cast(self.workspace, ctypes.c_void_p))

    def take(self, size):
        at, self.used = self.used, self.used + (size + 511) // 256 * 256
        assert self.used <= self.slab.size
        return self.slab.base + at

    def clear(self):
        cuda.stream_wait(self.stream)
        self.used = 0

    def put(self, array):
        array = numpy.ascontiguousarray(array)
        at = self.take(array.nbytes)
        if array.nbytes:
            cuda.upload(self.stream, at, array.ctypes.data, array.nbytes)
        return at

    def get(self, at, size):
        host = cuda.pinned(self.device, max(size, 1))
        cuda.download(self.stream, host, at, size)
        cuda.stream_wait(self.stream)
        got = numpy.ctypeslib.as_array(ctypes.cast(host, ctypes.POINTER(ctypes.c_uint8)), (max(size, 1),))[:size].copy()
        cuda.host_free(self.device, host)
        return got

    def call(self, op):
        cuda.run(self.stream, ctypes.byref(op), ctypes.byref(self.run))

    def fuse(self, chain):
        return cuda.fuse(self.stream, ctypes.byref(chain), ctypes.byref(self.run))

    def close(self):
        cuda.slab_close(self.device, ctypes.byref(self.slab))
        cuda.stream_close(self.stream)
        cuda.device_close(self.device)


@pytest.fixture(scope="module")
def gpu():
    made = Gpu(1024 * MIB)
    yield made
    made.close()


# ---- chains, fused and not ----

class Program:
    """A chain of (row name, loop, sources, dtypes of the results); inputs are views, outputs (node, part)."""

    def __init__(self, shape, inputs, scalars, nodes, outputs, end=None):
        self.shape, self.inputs, self.scalars, self.nodes, self.outputs = tuple(shape), inputs, scalars, nodes, outputs
        self.end = end  # (reduction, axes, (node, part)) or None

    def count(self):
        return int(numpy.prod(self.shape, dtype=numpy.int64))

    def fresh(self, gpu, dtype):
        return View(gpu.take(self.count() * SIZES[dtype]), dtype, self.shape)

    def end_op(self, gpu, value):
        name, axes, _ = self.end
        keep = [n for d, n in enumerate(self.shape) if not axes >> d & 1]
        loop, out = end_types(name, value.dtype)
        to = View(gpu.take(int(numpy.prod(keep, dtype=numpy.int64)) * SIZES[out]), out, keep)
        return operation(REQ_REDUCE, REDUCTIONS[name], loop, [to], [value], [axes, None, None]), to

    def chain(self, gpu, outputs):
        """The chain, and the view that its end writes."""
        c = Chain(ndim=len(self.shape), nnodes=len(self.nodes), ninputs=len(self.inputs), nscalars=len(self.scalars),
                  noutputs=len(outputs))
        c.keep = [dims(self.shape), self.inputs, outputs]
        c.shape = ctypes.addressof(c.keep[0])
        for k, view in enumerate(self.inputs):
            c.input[k] = view.operand()
        for k, value in enumerate(self.scalars):
            c.scalar[k] = Scalar.of(value)
        for n, (name, loop, sources, dtypes) in zip(c.node, self.nodes):
            row = UFUNCS[name]
            n.row, n.loop, n.nin, n.nout = row.id, loop, row.nin, row.nout
            for k, dtype in enumerate(dtypes):
                n.dtype[k] = dtype
            for k, source in enumerate(sources):
                n.source[k] = Source(*source)
        for o, view, (node, part) in zip(c.output, outputs, self.outputs):
            o.view, o.origin = view.operand(), Source(NODE, node, part)
        if self.end is None:
            return c, None
        node, part = self.end[2]
        op, to = self.end_op(gpu, View(None, self.nodes[node][3][part], self.shape))
        c.keep.append(op)
        c.end.op, c.end.origin = ctypes.addressof(op), Source(NODE, node, part)
        return c, to

    def unfused(self, gpu):
        """Views of the outputs (and the end's), by one operation after another."""
        made = []
        for name, loop, sources, dtypes in self.nodes:
            given = [made[i][part] if kind == NODE else self.inputs[i] if kind == INPUT else self.scalars[i]
                     for kind, i, part in sources]
            out = [self.fresh(gpu, dtype) for dtype in dtypes]
            gpu.call(operation(REQ_UFUNC, UFUNCS[name].id, loop, out, given))
            made.append(out)
        views = [made[node][part] for node, part in self.outputs]
        if self.end is not None:
            op, to = self.end_op(gpu, made[self.end[2][0]][self.end[2][1]])
            gpu.call(op)
            views.append(to)
        return views

    def fused(self, gpu, outputs=None):
        outputs = outputs or [self.fresh(gpu, self.nodes[node][3][part]) for node, part in self.outputs]
        c, to = self.chain(gpu, outputs)
        done = gpu.fuse(c)
        return done, outputs + ([to] if to is not None else [])

    def describe(self):
        lines = [f"shape {self.shape}, scalars {self.scalars}, end {self.end}"]
        lines += [f"input {k}: {DTYPES[v.dtype]} {v.shape} {v.strides}" for k, v in enumerate(self.inputs)]
        lines += [f"node {k}: {name}<{DTYPES[loop]}> of {sources} as {[DTYPES[d] for d in dtypes]}"
                  for k, (name, loop, sources, dtypes) in enumerate(self.nodes)]
        return "\n".join([*lines, f"outputs {self.outputs}"])


def end_types(name, dtype):
    """Loop and result of a reduction of values of a type."""
    kind = KINDS[dtype]
    if name in ("any", "all"):
        return dtype, CODE["bool"]
    if name == "count_nonzero":
        return dtype, CODE["int64"]
    if name in ("sum", "prod"):
        loop = CODE["int64"] if kind in "bi" else CODE["uint64"] if kind == "u" else dtype
        return loop, loop
    if name == "mean":
        loop = dtype if kind in "fc" else CODE["float64"]
        return loop, loop
    return dtype, dtype


def differences(x, y, dtype):
    """Find where the bits of two arrays differ, but for those of a NaN: which of the many it is depends on what the
    compiler makes of an expression."""
    if DTYPES[dtype] == "bfloat16":
        return numpy.flatnonzero((x != y) & ~(((x & 0x7fff) > 0x7f80) & ((y & 0x7fff) > 0x7f80)))
    if KINDS[dtype] == "c":
        part = numpy.float32 if x.dtype.itemsize == 8 else numpy.float64
        return differences(x.view(part), y.view(part), CODE[numpy.dtype(part).name]) // 2
    bits = f"u{x.dtype.itemsize}"
    other = x.view(bits) != y.view(bits)
    return numpy.flatnonzero(other & ~((x != x) & (y != y)) if KINDS[dtype] == "f" else other)


def compare(gpu, program, fused, unfused, text=""):
    for k, (a, b) in enumerate(zip(fused, unfused)):
        size = int(numpy.prod(a.shape, dtype=numpy.int64)) * SIZES[a.dtype]
        x, y = (gpu.get(v.data, size).view(storage(a.dtype)) for v in (a, b))
        differ = differences(x, y, a.dtype)
        if len(differ):
            at = differ[0]
            pytest.fail(f"{text}\n{program.describe()}\noutput {k}: {len(differ)} of {x.size} differ, at {at}: "
                        f"{x[at]!r} ({x[at].tobytes().hex()}), alone {y[at]!r} ({y[at].tobytes().hex()})")


def check(gpu, program, text=""):
    done, fused = program.fused(gpu)
    assert done == 1, (gpu.compiler.log or "not fused") + program.describe()
    compare(gpu, program, fused, program.unfused(gpu), text)
    gpu.clear()


# ---- values ----

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, numpy.inf, -numpy.inf, numpy.nan, 1e-40, 3e38, -7e4, 65504.0, 1e5, 2e5, 1e300]


def values(rng, dtype, count):
    kind, numpy_type = KINDS[dtype], storage(dtype)
    if kind == "b":
        return rng.integers(0, 2, count).astype(bool)
    if kind in "iu":
        small, info = rng.integers(0, 5, count), numpy.iinfo(numpy_type)
        wild = rng.integers(info.min, info.max, count, dtype=numpy_type, endpoint=True)
        return numpy.where(rng.random(count) < 0.5, small.astype(numpy_type), wild)
    with numpy.errstate(over="ignore", invalid="ignore"):
        v = numpy.where(rng.random(count) < 0.15, rng.choice(SPECIAL, count), rng.normal(0, 3, count))
        if kind == "c":
            v = v + 1j * numpy.where(rng.random(count) < 0.1, rng.choice(SPECIAL, count), rng.normal(0, 3, count))
        if DTYPES[dtype] == "bfloat16":
            return (v.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
        return v.astype(numpy_type)


def arranged(gpu, rng, dtype, shape):
    """A view of that shape, laid out in one way or another, and broadcast where that is drawn."""
    shape, size = list(shape), SIZES[dtype]
    own = [1 if n > 1 and rng.random() < 0.15 else n for n in shape]
    while own and rng.random() < 0.1:
        own.pop(0)
    order = list(range(len(own)))
    if rng.random() < 0.3:
        rng.shuffle(order)
    gap = int(rng.integers(1, 4)) if rng.random() < 0.25 else 1
    strides, step = [0] * len(own), size * gap
    for d in reversed(order):
        strides[d] = step
        step *= own[d]
    offset = 0
    lead = int(rng.integers(0, 4)) * size if rng.random() < 0.3 else 0
    for d, n in enumerate(own):
        if rng.random() < 0.15:
            offset -= strides[d] * (n - 1) * -1
            strides[d] = -strides[d]
    data = gpu.put(values(rng, dtype, step // size + 4))
    return View(data + lead + offset, dtype, own, strides)


# ---- tests ----

@pytest.mark.parametrize("loop", range(len(DTYPES)), ids=DTYPES)
def test_every_row(gpu, loop):
    """Chains have as many rows as there are outputs, with inputs in a row, repeated and of another type."""
    rng = numpy.random.default_rng(loop)
    names = [name for name, row in UFUNCS.items() if fusable(row, loop)]
    for first in range(0, len(names), 12):
        shape = (37, 64)
        inputs = [View(gpu.put(values(rng, loop, 37 * 64)), loop, shape),
                  View(gpu.put(values(rng, loop, 37 * 64)), loop, shape),
                  View(gpu.put(values(rng, loop, 64)), loop, (64,))]
        nodes, outputs = [], []
        for name in names[first:first + 12]:
            row = UFUNCS[name]
            sources = [(INPUT, 0, 0), (INPUT, 1, 0), (INPUT, 2, 0)][:row.nin]
            if name == "ldexp":
                sources = [(INPUT, 0, 0), (SCALAR, 0, 0)]
            nodes.append((name, loop, sources, [row.out(k, loop) for k in range(row.nout)]))
            outputs += [(len(nodes) - 1, k) for k in range(row.nout)]
        check(gpu, Program(shape, inputs, [3], nodes, outputs))


def random_program(gpu, rng, nodes):
    shape = [int(n) for n in rng.integers(1, 40, rng.integers(0, 5))]
    if rng.random() < 0.3:
        shape = [int(rng.integers(1, 100000))]
    few = rng.choice(len(DTYPES), 3)
    inputs = [arranged(gpu, rng, int(rng.choice(few)), shape) for _ in range(rng.integers(1, 5))]
    scalars = [1] + [[1, 2.5, True, -3, 1e10][k] for k in rng.integers(0, 5, 3)]
    made, rows = [], list(UFUNCS.values())
    counts = [k for k, view in enumerate(inputs) if KINDS[view.dtype] in "bi"]  # for ldexp, which wants an int64
    while len(made) < nodes:
        row = rows[rng.integers(len(rows))]
        loop = int(rng.choice(few)) if rng.random() < 0.7 else int(rng.integers(len(DTYPES)))
        if not fusable(row, loop):
            continue
        sources = []
        for k in range(row.nin):
            if row.rule.into[k] == "L":
                sources.append((INPUT, counts[0], 0) if counts else (SCALAR, 0, 0))
            elif made and rng.random() < 0.6:
                i = int(rng.integers(len(made)))
                sources.append((NODE, i, int(rng.integers(len(made[i][3])))))
            elif k > 0 and rng.random() < 0.3:
                whole = KINDS[row.into(k, loop)] in "biu"
                sources.append((SCALAR, next((i for i, s in enumerate(scalars) if not whole or s in (1, True)), None), 0))
                if sources[-1][1] is None:
                    sources[-1] = (INPUT, 0, 0)
            else:
                sources.append((INPUT, int(rng.integers(len(inputs))), 0))
        dtypes = [int(rng.integers(len(DTYPES))) if rng.random() < 0.15 else row.out(k, loop) for k in range(row.nout)]
        made.append((row.name, loop, sources, dtypes))
    outputs = [(len(made) - 1, 0)] + [(int(rng.integers(len(made))), 0) for _ in range(rng.integers(0, 3))]
    return Program(shape, inputs, scalars, made, outputs)


@pytest.mark.parametrize("seed", range(8))
def test_random_chains(gpu, seed):
    rng, fused = numpy.random.default_rng(seed), 0
    for i in range(12):
        program = random_program(gpu, rng, int(rng.integers(1, 12)))
        done, got = program.fused(gpu)
        assert not gpu.compiler.log, gpu.compiler.log
        if done:
            compare(gpu, program, got, program.unfused(gpu), f"seed {seed}, program {i}")
        fused += done
        gpu.clear()
    assert fused >= 8  # the others: too many dimensions that do not join, or elements that are not aligned


def float_chain(inputs, shape, outputs=((3, 0),), end=None):
    f = inputs[0].dtype
    nodes = [("multiply", f, [(INPUT, 0, 0), (INPUT, 0, 0)], [f]), ("add", f, [(NODE, 0, 0), (INPUT, 1, 0)], [f]),
             ("negative", f, [(NODE, 1, 0)], [f]), ("multiply", f, [(NODE, 2, 0), (SCALAR, 0, 0)], [f])]
    return Program(shape, inputs, [0.5], nodes, list(outputs), end)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("count", [1, 3, 255, 1024, 4097, 1000003])
def test_sizes(gpu, dtype, count):
    rng, code = numpy.random.default_rng(count), CODE[dtype]
    inputs = [View(gpu.put(values(rng, code, count)), code, (count,)) for _ in range(2)]
    check(gpu, float_chain(inputs, (count,)))


def test_shifted_views(gpu):
    """The view x[1:] is a neighbour in vectors."""
    rng, code = numpy.random.default_rng(1), CODE["float32"]
    base = gpu.put(values(rng, code, 100001))
    for a in range(5):
        inputs = [View(base + 4 * a, code, (99990,)), View(base + 4, code, (99990,))]
        program = float_chain(inputs, (99990,))
        memory = gpu.take(400100)
        done, got = program.fused(gpu, [View(memory + 4 * a, code, (99990,))])
        assert done
        compare(gpu, program, got, program.unfused(gpu))


def test_in_place(gpu):
    """Outputs may be the same view as an input, also where that lies with gaps."""
    rng, code = numpy.random.default_rng(2), CODE["float32"]
    for shape, strides in (((70000,), (4,)), ((70000,), (8,)), ((300, 200), (4, 1200)), ((300, 200), (1600, 4))):
        data = values(rng, code, 200000)
        first, second = gpu.put(data), gpu.put(data)
        other = View(gpu.put(values(rng, code, int(numpy.prod(shape)))), code, shape)
        program = float_chain([View(first, code, shape, strides), other], shape)
        done, _ = program.fused(gpu, [View(first, code, shape, strides)])
        assert done
        alone = float_chain([View(second, code, shape, strides), other], shape).unfused(gpu)[0]
        gpu.call(operation(REQ_UFUNC, UFUNCS["copy"].id, code, [View(second, code, shape, strides)], [alone]))
        assert (gpu.get(first, 800000) == gpu.get(second, 800000)).all()
        gpu.clear()


def test_powers(gpu):
    """Integers are raised by a number that is not negative, or not at all."""
    rng, code = numpy.random.default_rng(3), CODE["int32"]
    x = View(gpu.put(values(rng, code, 1000)), code, (1000,))
    for exponent, done in ((2, True), (0, True), (True, True), (-1, False)):
        nodes = [("power", code, [(INPUT, 0, 0), (SCALAR, 0, 0)], [code])]
        program = Program((1000,), [x], [exponent], nodes, [(0, 0)])
        assert program.fused(gpu)[0] == done
        if done:
            check(gpu, program)
            x = View(gpu.put(values(rng, code, 1000)), code, (1000,))
    nodes = [("power", code, [(INPUT, 0, 0), (INPUT, 0, 0)], [code])]
    assert Program((1000,), [x], [], nodes, [(0, 0)]).fused(gpu)[0] == 0
    gpu.clear()


@pytest.mark.parametrize("name", ["sum", "mean", "min", "max", "any", "all", "count_nonzero", "argmax", "std"])
def test_ends(gpu, name):
    """Bit for bit what the reduction gives of the values as an array."""
    rng = numpy.random.default_rng(4)
    for dtype in ("float32", "float64", "float16", "int32", "bool"):
        code = CODE[dtype]
        if name == "std" and KINDS[code] != "f":
            continue
        for shape, axes in (((1000003,), 1), ((300, 1000), 2), ((300, 1000), 1), ((7, 30, 64), 7), ((5,), 1), ((40, 33), 2)):
            count = int(numpy.prod(shape))
            inputs = [View(gpu.put(values(rng, code, count)), code, shape) for _ in range(2)]
            nodes = [("maximum", code, [(INPUT, 0, 0), (INPUT, 1, 0)], [code]),
                     ("add", code, [(NODE, 0, 0), (INPUT, 1, 0)], [code])]
            for outputs in ([], [(0, 0)]):
                program = Program(shape, inputs, [], nodes, outputs, (name, axes, (1, 0)))
                done, got = program.fused(gpu)
                assert done == 1, gpu.compiler.log
                compare(gpu, program, got, program.unfused(gpu))
            gpu.clear()


def test_a_reduction_of_what_broadcasts(gpu):
    rng, code = numpy.random.default_rng(5), CODE["float32"]
    inputs = [View(gpu.put(values(rng, code, 500)), code, (500, 1)), View(gpu.put(values(rng, code, 700)), code, (700,))]
    for axes in (1, 2, 3):
        program = float_chain(inputs, (500, 700), (), ("sum", axes, (3, 0)))
        done, got = program.fused(gpu)
        assert done
        compare(gpu, program, got, program.unfused(gpu))
    gpu.clear()


def test_not_ready_yet():
    """Nothing is waited for, and nothing written, until the compiler has it; it is not asked at every turn."""
    gpu = Gpu(64 * MIB, delay=3)
    code = CODE["float32"]
    data = numpy.arange(1000, dtype=numpy.float32)
    inputs = [View(gpu.put(data), code, (1000,)) for _ in range(2)]
    program, out = float_chain(inputs, (1000,)), View(gpu.put(numpy.zeros(1000, numpy.float32)), code, (1000,))
    c, _ = program.chain(gpu, [out])
    assert gpu.fuse(c) == 0
    assert not gpu.get(out.data, 4000).any() and gpu.compiler.compiled == 0
    calls, until = 1, time.monotonic() + 10
    while not (done := gpu.fuse(c)) and time.monotonic() < until:
        calls += 1
    assert done and calls > 1000
    assert list(gpu.compiler.asked.values()) == [4]
    assert (gpu.get(out.data, 4000).view(numpy.float32) == -(data * data + data) * numpy.float32(0.5)).all()
    gpu.close()


def test_what_does_not_compile_is_left_alone():
    gpu = Gpu(64 * MIB)
    code = CODE["float32"]
    inputs = [View(gpu.put(numpy.arange(1000, dtype=numpy.float32)), code, (1000,)) for _ in range(2)]
    compile_it, gpu.compiler.compile = gpu.compiler.compile, lambda job: type(compile_it(job))(log=b"no")
    c, _ = float_chain(inputs, (1000,)).chain(gpu, [View(gpu.take(4000), code, (1000,))])
    assert [gpu.fuse(c) for _ in range(100)] == [0] * 100
    assert list(gpu.compiler.asked.values()) == [1]
    gpu.close()


def test_more_chains_than_are_kept():
    """Chains of which there are too many at a time are not fused; nothing fails."""
    gpu = Gpu(64 * MIB, delay=1 << 60)
    code = CODE["float32"]
    inputs = [View(gpu.put(numpy.ones(1000, numpy.float32)), code, (1000,)) for _ in range(2)]
    out = View(gpu.take(4000), code, (1000,))
    for i in range(1500):
        nodes = [(("add", "subtract", "multiply")[i // 3 ** k % 3], code, [(INPUT, 0, 0), (INPUT, 1, 0)], [code])
                 for k in range(7)]
        c, _ = Program((1000,), inputs, [], nodes, [(k, 0) for k in range(7)]).chain(gpu, [out] * 7)
        assert gpu.fuse(c) == 0
    gpu.close()
