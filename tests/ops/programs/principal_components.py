"""Principal components: centred points, their covariance's eigenvectors, the part of the variance that each explains."""

import numpy


def run(xp, n=200, dimensions=6, kept=3):
    rng = numpy.random.default_rng(2)
    points = xp.asarray(rng.normal(size=(n, dimensions)) @ rng.normal(size=(dimensions, dimensions)) + 5)
    centred = points - points.mean(axis=0)
    values, vectors = xp.linalg.eigh(xp.cov(centred, rowvar=False))
    values, vectors = values[::-1], vectors[:, ::-1]
    scores = centred @ vectors[:, :kept]
    rebuilt = scores @ vectors[:, :kept].T
    return values / values.sum(), abs(scores), ((centred - rebuilt) ** 2).mean()
