"""Conjugate gradients: a symmetric positive definite system solved by so many steps, deciding nothing on this side."""

import numpy


def step(xp, matrix, x, residual, direction, square):
    along = matrix @ direction
    length = square / (direction @ along)
    x = x + length * direction
    residual = residual - length * along
    following = residual @ residual
    return x, residual, residual + following / square * direction, following


def run(xp, n=40, steps=25):
    rng = numpy.random.default_rng(1)
    half = rng.normal(size=(n, n))
    matrix, target = xp.asarray(half @ half.T / n + 2 * numpy.eye(n)), xp.asarray(rng.normal(size=n))
    x = xp.zeros_like(target)
    residual = direction = target
    square = residual @ residual
    for _ in range(steps):
        x, residual, direction, square = step(xp, matrix, x, residual, direction, square)
    return x, xp.linalg.norm(matrix @ x - target)
