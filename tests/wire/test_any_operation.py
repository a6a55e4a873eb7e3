"""Every row of the tables with random loops, operands, shapes and parameters, most of which make no sense: the server
carries out or refuses each, and stays what it was. (What comes out is checked elsewhere.)"""
import random

import numpy as np
import pytest

from wire_client import (CALL, CALLS, DTYPE, QUERY, REDUCE, REDUCTIONS, STAT, SYNC, UFUNC, UFUNCS, Failed, fresh, scalar, view)

SIZE = 4096 # bytes of a buffer
KINDS = list(DTYPE)
ITEM = {"bool": 1, "bfloat16": 2, **{k: np.dtype(k).itemsize for k in KINDS if k != "bfloat16"}}
NUMBERS = [0, 1, -1, 2, 3, 7, 2**31, 2**63 - 1, -2**63, 2**64 - 1, 0.5, float("nan"), float("inf"), True, False, 1e308,
           3 + 4j]


class Chaos:
    def __init__(self, client, seed):
        self.client, self.rng = client, random.Random(seed)
        rng = np.random.default_rng(seed)
        # Contents are any bits, small numbers (as indices and masks), and zeros.
        contents = [rng.bytes(SIZE), rng.integers(-4, 4, SIZE // 8).tobytes(), rng.integers(0, 2, SIZE, "u1").tobytes(),
                    rng.normal(size=SIZE // 8).tobytes(), bytes(SIZE)]
        self.buffers = [client.upload(np.frombuffer(data, "u1")) for data in contents]

    def shape(self):
        rng = self.rng
        if rng.random() < 0.6:
            return list((4, 3, 5)[rng.randrange(4):])
        return [rng.choice([0, 1, 1, 2, 3, 4, 5]) for _ in range(rng.choice([0, 1, 1, 2, 3, 4, rng.randrange(33)]))]

    def array(self, kind, shape):
        """A view that lies within a buffer, nearly always; strides of either sign, 0, or of no order."""
        rng, item = self.rng, ITEM[kind]
        buffer = rng.choice(self.buffers)
        if rng.random() < 0.5:
            return view(buffer, kind, shape, None, item * rng.randrange(8))
        strides, low, high = [], 0, item
        for n in shape:
            step = item * rng.choice([0, 1, 1, 2, -1, -3, 5])
            strides.append(step)
            low, high = low + min(0, max(1, n - 1) * step), high + max(0, max(1, n - 1) * step)
        offset = -low + item * rng.randrange(3)
        return view(buffer, kind, shape, strides, offset if offset + high <= SIZE or rng.random() < 0.05 else 0)

    def kind(self, loop, index=False):
        return self.rng.choice([loop] * 4 + ["int64"] * (6 if index else 1) + ["bool"] * 2 + KINDS[:1] + [self.rng.choice(KINDS)])

    def operand(self, loop, shape, index):
        if self.rng.random() < 0.1:
            return scalar(self.rng.choice(NUMBERS))
        return self.array(self.kind(loop, index), shape if self.rng.random() < 0.7 else self.shape())

    def output(self, loop, shape, sized):
        kind = self.rng.choice([loop, loop, "int64", "bool", self.rng.choice(KINDS)])
        if sized:
            return [self.client.id(), DTYPE[kind], None]
        if self.rng.random() < 0.5:
            return fresh(self.client.id(), kind, shape)
        return self.array(kind, shape)

    def parameter(self, letter):
        if letter == "i" and self.rng.random() < 0.9:
            return self.rng.choice([0, 0, 1, 2, 3, -1])
        if letter == "b" and self.rng.random() < 0.9:
            return self.rng.random() < 0.5
        return scalar(self.rng.choice(NUMBERS))

    def ufunc(self, row, nin, nout):
        loop, shape = self.rng.choice(KINDS), self.shape()
        n = nin + (self.rng.random() < 0.3)
        inputs = [self.operand(loop, self.rng.choice([shape, shape, shape[1:], [1] * len(shape)]), False) for _ in range(n)]
        outputs = [self.output(loop, shape, False) for _ in range(nout)]
        return [UFUNC, row, DTYPE[loop], outputs, inputs, []]

    def reduce(self, row):
        loop, shape = self.rng.choice(KINDS), self.shape()
        axes = self.rng.randrange(1 << min(len(shape), 32)) if self.rng.random() < 0.95 else self.rng.choice([-1, 2**40])
        rest = [n for i, n in enumerate(shape) if not axes >> i & 1]
        inputs = [self.array(self.kind(loop), shape)]
        if self.rng.random() < 0.3:
            inputs.append(self.array("bool", self.rng.choice([shape, shape[1:], [1]])))
        parameters = [axes, self.rng.choice([None, None, 0, 1, 0.5, 10**6]),
                      self.rng.choice([None, None, None, scalar(self.rng.choice(NUMBERS))])]
        return [REDUCE, row, DTYPE[loop], [self.output(loop, rest, False)], inputs, parameters]

    def call(self, row, nin, letters, ask):
        loop, shape = self.rng.choice(KINDS + ["int64", "float64"] * 4), self.shape()
        inputs = [self.operand(loop, shape, i > 0) for i in range(self.rng.randrange(nin[0], max(nin[0], min(nin[1], 4)) + 1))]
        # The shape that the call is likely to give.
        likely = self.rng.choice([shape, shape, shape[:1], (shape + shape[1:])[:32]])
        return [QUERY if ask else CALL, row, DTYPE[loop], [self.output(loop, likely, ask)], inputs,
                [self.parameter(letter) for letter in letters]]

    def run(self, message):
        if message[0] == QUERY:
            request = self.client.ask(QUERY, *message[1:])
        else:
            self.client.send(message)
            request = self.client.ask(SYNC)
        try:
            self.client.answer(request)
        except Failed:
            return False
        outputs = [x for x in message[3] if len(x) == 3 and x[2] is not None]
        for buffer, kind, shape in outputs:
            try:
                self.client.read([buffer, kind, 0, shape]) if kind != DTYPE["bfloat16"] else None
            except Failed:
                return False
        self.client.free(*[x[0] for x in message[3] if len(x) == 3])
        return True


def rows(table):
    import re
    from wire_client import TOP
    text = (TOP / "protocol" / f"{table}.def").read_text()
    pattern = {"ufunc": r"^AD_UFUNC\((\d+), (\w+), (\d), (\d)", "reduction": r"^AD_REDUCTION\((\d+), (\w+)",
               "call": r'^AD_CALL\((\d+), (\w+), \d+, (\d+), (\d+), "(\w*)", (\w+)'}[table]
    return [m.groups() for m in re.finditer(pattern, text, re.M)]


def many(server, bystander, seed, times, make):
    done = 0
    with server.client() as client:
        chaos = Chaos(client, seed)
        for _ in range(times):
            done += chaos.run(make(chaos))
        client.answer(client.ask(STAT))
        assert client.done == client.number
    bystander.check()
    return done


@pytest.mark.parametrize("row, name, nin, nout", rows("ufunc"), ids=[r[1] for r in rows("ufunc")])
def test_ufunc(server, bystander, row, name, nin, nout):
    assert UFUNCS[name] == int(row)
    assert many(server, bystander, int(row), 200, lambda c: c.ufunc(int(row), int(nin), int(nout))) > 0


@pytest.mark.parametrize("row, name", rows("reduction"), ids=[r[1] for r in rows("reduction")])
def test_reduction(server, bystander, row, name):
    assert REDUCTIONS[name] == int(row)
    assert many(server, bystander, 1000 + int(row), 200, lambda c: c.reduce(int(row))) > 0


@pytest.mark.parametrize("row, name, least, most, letters, kind", rows("call"), ids=[r[1] for r in rows("call")])
def test_call(server, bystander, row, name, least, most, letters, kind):
    assert CALLS[name] == int(row)
    accepted = many(server, bystander, 2000 + int(row), 2000,
                    lambda c: c.call(int(row), (int(least), int(most)), letters, kind == "ASK"))
    # Six operands, or the three vectors of a matrix for one type alone, hardly ever fit each other by chance.
    assert accepted > 0 or int(least) > 4 or name in ("spband", "sptake")
