"""Heat that spreads over a plate whose edge is kept cold, step by step in place."""

import numpy


def run(xp, n=40, m=50, steps=20):
    start = numpy.zeros((n, m))
    start[n // 4 : n // 2, m // 5 : m // 2] = 1
    u = xp.asarray(start)
    u = u.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u, u.max()
