"""Logistic regression by gradient descent on standardised columns; how much of the data it gets right."""

import numpy


def run(xp, n=300, dimensions=5, steps=15, rate=0.5):
    rng = numpy.random.default_rng(5)
    points = rng.normal(3, 2, (n, dimensions))
    answer = xp.asarray((points @ rng.normal(size=dimensions) > 1).astype(float))
    x = xp.asarray(points)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    weight, bias = xp.zeros(dimensions), xp.zeros(())
    for _ in range(steps):
        error = 1 / (1 + xp.exp(-(x @ weight + bias))) - answer
        weight = weight - rate * (x.T @ error) / n
        bias = bias - rate * error.mean()
    chance = 1 / (1 + xp.exp(-(x @ weight + bias)))
    loss = -xp.mean(answer * xp.log(chance) + (1 - answer) * xp.log1p(-chance))
    return weight, bias, loss, ((chance > 0.5) == (answer == 1)).mean()
