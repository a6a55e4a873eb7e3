"""Heat in a plate whose material changes from place to place: -div(k grad u) = f, by finite differences, a sparse matrix and
conjugate gradients with a preconditioner.

heat_flow.py [--size N] [--library arrayd|scipy|both] [--picture FILE.png]: prints the residual, the iterations and the time.
"""
import argparse
import importlib
import time

import numpy


def libraries(name):
    """NumPy's functions, scipy.sparse's and scipy.sparse.linalg's, of SciPy or of arrayd."""
    if name == "scipy":
        return numpy, *map(importlib.import_module, ("scipy.sparse", "scipy.sparse.linalg"))
    return tuple(map(importlib.import_module, ("arrayd", "arrayd.scipy.sparse", "arrayd.scipy.sparse.linalg")))


def conductivity(n, seed=3):
    """A plate of n by n cells with inclusions that conduct a hundred times better."""
    rng = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:1:1j * n, 0:1:1j * n]
    k = numpy.ones((n, n))
    for cy, cx, radius in rng.random((12, 3)) * [1, 1, 0.12]:
        k[(y - cy) ** 2 + (x - cx) ** 2 < radius ** 2] = 100
    return k


def plate(xp, sparse, k):
    """The matrix of the equation: fluxes through the edges of cells, with the plate's rim at 0."""
    n = k.shape[0]
    padded = xp.pad(k, 1, mode="edge")
    middle = padded[1:-1, 1:-1]
    north, south, west, east = (2 * middle * other / (middle + other) for other in (
        padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]))
    total = (north + south + west + east).ravel()
    west, east = west.copy(), east.copy()
    west[:, 0] = 0
    east[:, -1] = 0
    diagonals = [total, -east.ravel()[:-1], -west.ravel()[1:], -south.ravel()[:-n], -north.ravel()[n:]]
    return sparse.diags(diagonals, [0, 1, -1, n, -n], format="csr")


def solve(xp, sparse, linalg, k):
    """The temperature, the relative residual and the number of iterations."""
    n = k.shape[0]
    matrix = plate(xp, sparse, k)
    source = xp.ones(n * n) / n ** 2
    inverse = 1 / matrix.diagonal()
    preconditioner = linalg.LinearOperator(matrix.shape, matvec=lambda v: inverse * v, dtype=matrix.dtype)
    steps: list[int] = []
    u, info = linalg.cg(matrix, source, rtol=1e-8, maxiter=20 * n, M=preconditioner, callback=lambda _: steps.append(1))
    if info:
        raise RuntimeError(f"no convergence after {info} iterations")
    residual = xp.linalg.norm(source - matrix @ u) / xp.linalg.norm(source)
    return u.reshape(n, n), float(residual), len(steps)


def save_picture(path, u):
    """The temperature as grey levels, as a PNG."""
    from PIL import Image
    Image.fromarray((u / u.max() * 255).astype(numpy.uint8)).save(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--library", default="both", choices=("arrayd", "scipy", "both"))
    parser.add_argument("--picture")
    options = parser.parse_args()
    for name in ("scipy", "arrayd") if options.library == "both" else (options.library,):
        xp, sparse, linalg = libraries(name)
        k = xp.asarray(conductivity(options.size))
        begin = time.perf_counter()
        u, residual, steps = solve(xp, sparse, linalg, k)
        print(f"{name:8} residual {residual:.1e}, {steps} iterations {time.perf_counter() - begin:.3f} s")
    if options.picture:
        save_picture(options.picture, u if isinstance(u, numpy.ndarray) else u.get())


if __name__ == "__main__":
    main()
