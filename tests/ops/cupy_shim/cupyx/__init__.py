"""A part of cupyx that the programs use, by NumPy."""
import numpy

scatter_add = numpy.add.at
scatter_max = numpy.maximum.at
empty_pinned, zeros_pinned = numpy.empty, numpy.zeros


def rsqrt(x):
    return 1 / numpy.sqrt(x)
