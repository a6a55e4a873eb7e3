"""Words as numbers: sorting, unique values, histograms, scatters, text and binary files."""
import os
import sys
import tempfile

import cupy
import cupyx
import numpy

text = ("the quick brown fox jumps over the lazy dog and the dog barks at the fox " * 20).split()
vocabulary = sorted(set(text))
ids = cupy.array([vocabulary.index(word) for word in text])
values, counts = cupy.unique(ids, return_counts=True)
for i in cupy.argsort(-counts, kind="stable")[:3].tolist():
    print(vocabulary[int(values[i])], int(counts[i]))
print(cupy.bincount(ids, minlength=20).tolist())
scores = cupy.zeros(len(vocabulary), dtype=cupy.float32)
cupyx.scatter_add(scores, ids, cupy.arange(len(ids), dtype=cupy.float32) / 10)
last = cupy.full(len(vocabulary), -1)
cupyx.scatter_max(last, ids, cupy.arange(len(ids)))
print(scores.tolist(), last.tolist())
numbers = cupy.asarray(numpy.random.default_rng(9).integers(-50, 50, 1000), dtype="int16")
hist, edges = cupy.histogram(numbers, bins=7)
print(hist, edges)
ordered = cupy.sort(numbers)
print(ordered[::100], cupy.searchsorted(ordered, cupy.array([-20, 0, 20])), cupy.partition(numbers, 10)[10])
print(cupy.digitize(numbers[:9], cupy.array([-25, 0, 25])), int(cupy.median(numbers)))
print(cupy.isin(numbers, [1, 2, 3]).sum())
numbers[numbers < 0] *= -1
print(numbers.dtype, numbers.max(), numbers.argmax(), cupy.count_nonzero(numbers > 25), numbers.nonzero()[0].size)
print(cupy.diff(cupy.flatnonzero(numbers == numbers.max())), cupyx.rsqrt(cupy.array([4.0, 16.0])))
folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
path = os.path.join(folder, "numbers")
cupy.save(path + ".npy", numbers)
cupy.savez(path + ".npz", numbers=numbers, scores=scores)
back = cupy.load(path + ".npz")
print((cupy.load(path + ".npy") == numbers).all(), float(back["scores"].sum()), sorted(back.keys()))
cupy.savetxt(path + ".txt", scores, fmt="%.3f")
print(cupy.loadtxt(path + ".txt").sum(), numpy.load(path + ".npy").sum())
