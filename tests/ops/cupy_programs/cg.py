"""Conjugate gradients, as in CuPy's examples, with events for the time."""
import sys

import cupy as cp
import cupy.linalg
import numpy as np
from cupy import cuda


def fit(A, b, tol, max_iter):
    xp = cp.get_array_module(A)
    x = xp.zeros_like(b, dtype=np.float64)
    r0 = b - xp.dot(A, x)
    p = r0
    for i in range(max_iter):
        a = xp.inner(r0, r0) / xp.inner(p, xp.dot(A, p))
        x += a * p
        r1 = r0 - a * xp.dot(A, p)
        if xp.linalg.norm(r1) < tol:
            return x, i
        b = xp.inner(r1, r1) / xp.inner(r0, r0)
        p = r1 + b * p
        r0 = r1
    print("Failed to converge. Increase max-iter or tol.", file=sys.stderr)
    return x, max_iter


n = 200
rng = np.random.default_rng(1)
root = rng.normal(size=(n, n))
A = cp.asarray(root @ root.T + n * np.eye(n))
x_ans = cp.asarray(rng.random(n))
b = A.dot(x_ans)
start, end = cuda.Event(), cuda.Event()
start.record()
x, steps = fit(A, b, 1e-9, 500)
end.record()
end.synchronize()
assert cuda.get_elapsed_time(start, end) >= 0 and steps < 100
print("maximum error %.6f" % float(cp.max(cp.abs(x - x_ans))), "residual is small:", bool(cp.allclose(A @ x, b)))
print(x[:8], x[-3:].get())
L = cupy.linalg.cholesky(A)
print(np.round(cp.asnumpy(cupy.linalg.solve(L.T, cupy.linalg.solve(L, b)) - x_ans), 6)[:3] + 0.0)
print(float(cupy.linalg.slogdet(A)[1]), float(cp.trace(cupy.linalg.inv(A))), float(cupy.linalg.cond(A)))
