"""Every family of kernels under compute-sanitizer: sanitize.py [--build build/release] [--tool memcheck ...]
[--family sorts ...].

Starts arrayd below the tool, computes each line of FAMILIES there and with NumPy, compares, and prints what the tool
found. Exits with 1 when anything differs or the tool found an error.
"""
import argparse
import importlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy
import scipy.sparse

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/bench"))
import bench  # noqa: E402

TOOLS = ("memcheck", "initcheck", "racecheck", "synccheck")
rng = numpy.random.default_rng(5)
PLANE = rng.standard_normal((83, 130))
SQUARE = PLANE[:40, :40] @ PLANE[:40, :40].T + 40 * numpy.eye(40)
MASK = rng.random((83, 130)) < 0.4
INDEX = rng.integers(0, 83, (7, 9))
INTS = rng.integers(-90, 90, (83, 130))
KINDS = ("bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
         "complex64", "complex128")
NUMBERS = KINDS[1:]
FLOATS = KINDS[8:11]
LAPACK = KINDS[9:]


def kinds(names, function):
    """A line for each dtype: function(xp, plane of that dtype)."""
    def plane(name):
        return (INTS if numpy.dtype(name).kind in "biu" else INTS / 64).astype(name)

    return {name: (lambda xp, x=plane(name): function(xp, xp.asarray(x))) for name in names}


def unary(xp, x):
    return [xp.negative(x), xp.absolute(x), xp.square(x[::2, ::-3]), xp.sign(x.T), x.astype("complex64"), x != 0]


def binary(xp, x):
    return [x + x, x * x[:1], x - x[:, 5:6], x[::-1] + x, xp.add(x, x, where=xp.asarray(MASK), out=x.copy())]


def copies(xp, x):
    wide = xp.broadcast_to(x[:, None, :], (83, 3, 130))
    return [xp.ascontiguousarray(x.T), xp.ascontiguousarray(wide.transpose(2, 0, 1)), xp.tile(x, (2, 3)), xp.roll(x, 7)]


def reductions(xp, x):
    found = [x.sum(), x.sum(axis=0), x.sum(axis=1), x.T.sum(axis=0), x.prod(axis=1), x.max(axis=0), x.min(),
             x.argmax(axis=1), x.any(axis=0), x.all(), xp.count_nonzero(x, axis=1)]
    return found + ([x.mean(axis=0), x.var(), x.std(axis=1), xp.nansum(x)] if x.dtype.kind == "f" else [])


def scans(xp, x):
    return [xp.cumsum(x[:2]), xp.cumsum(x, axis=0, dtype="float64" if x.dtype.kind == "f" else x.dtype),
            xp.cumprod(x[:3, :4], axis=1)]


def masks(xp, x):
    mask = xp.asarray(MASK)
    filled = x.copy()
    filled[mask] = 3
    return [x[mask], xp.where(mask, x, x[::-1]), filled, xp.nonzero(x)[0], xp.compress(MASK[0], x, axis=1)]


def indexing(xp, x):
    index = xp.asarray(INDEX)
    written, added = x.copy(), x.copy()
    written[xp.asarray(numpy.arange(9))] = 1
    xp.add.at(added, index[0], x[:9])
    return [x[index], xp.take(x, index, axis=1), x[index, 3:5], written, added]


def sorts(xp, x):
    return [xp.sort(x), xp.sort(x, axis=0), xp.sort(x.ravel()), xp.argsort(x, axis=1, kind="stable"),
            xp.sort(xp.partition(xp.tile(x.ravel(), (1 << 20) // x.size + 1), 1 << 19)),
            xp.searchsorted(xp.sort(x.ravel()), x[3])]


def products(xp, x):
    return [x @ x.T, x.T @ x, x[0] @ x[1], xp.matmul(x[:80].reshape(4, 20, 130), x[:80].reshape(4, 20, 130).mT)]


def transforms(xp):
    x = xp.asarray(PLANE)
    return [xp.fft.fft(x), xp.fft.ifft2(x), xp.fft.rfft(x, axis=0), xp.fft.irfft(xp.fft.rfft(x)),
            xp.fft.fftn(x.astype("complex64"))]


def decompositions(xp, t):
    a = xp.asarray(SQUARE.astype(t))
    q, r = xp.linalg.qr(a)
    return [xp.linalg.cholesky(a), xp.linalg.inv(a), xp.linalg.solve(a, a[:, :3]), xp.linalg.det(a / 40),
            xp.linalg.eigvalsh(a), xp.linalg.svd(a, compute_uv=False), q @ r,
            xp.linalg.solve(xp.stack([a, a + a]), a[:, :2])]


def special(xp):
    x = xp.asarray(numpy.abs(PLANE) + 0.1)
    return [xp.exp(x), xp.log(x), xp.sin(x), xp.arctan2(x, x[::-1]), xp.power(x, 1.5), xp.floor_divide(x, 0.3),
            xp.hypot(x, 1), xp.tanh(x), xp.bincount(xp.asarray(numpy.abs(INTS).ravel())), xp.linspace(0, 1, 1001),
            xp.histogram(x.ravel(), 7)[0], xp.arange(1000), xp.full((30, 40), 7)]


def sparse(xp, x):
    lib = scipy.sparse if xp is numpy else importlib.import_module("arrayd.scipy.sparse")
    a, b = (lib.csr_matrix(xp.where(xp.asarray(mask), x, xp.zeros((), x.dtype))) for mask in (MASK, MASK[::-1]))
    made = [a + b, a.multiply(b), a.maximum(b), a != b, a.tocsc(), a.tocsc().tocsr(), lib.hstack((a, b)), a[:, 5:40], lib.tril(a, 3),
            a.tocoo(), a @ b.T]
    return [m.toarray() for m in made] + [a @ x.T, a.T @ x[:, 0], a.diagonal()]


FAMILIES = {
    "unary": kinds(NUMBERS, unary), "binary": kinds(NUMBERS, binary), "copies": kinds(KINDS, copies),
    "reductions": kinds(NUMBERS[:-2], reductions), "scans": kinds(NUMBERS[:-2], scans), "masks": kinds(NUMBERS, masks),
    "indexing": kinds(NUMBERS[1:], indexing), "sorts": kinds(NUMBERS[:-2], sorts), "products": kinds(NUMBERS, products),
    "sparse": kinds(("int64", "float32", "float64", "complex128"), sparse), "transforms": {"": transforms}, "special": {"": special},
    "linalg": {t: (lambda xp, t=t: decompositions(xp, t)) for t in LAPACK},
}
RANDOM = {
    "random": lambda g: g.random(5000), "float32": lambda g: g.random(5001, dtype="float32"),
    "normal": lambda g: g.standard_normal(5000), "integers": lambda g: g.integers(0, 77, 5000),
    "poisson": lambda g: g.poisson(3.5, 5000), "gamma": lambda g: g.gamma(2.0, size=5000),
    "binomial": lambda g: g.binomial(20, 0.3, 5000), "beta": lambda g: g.beta(1.0, 2.0, 5000),
    "permutation": lambda g: g.permutation(1000),
}


def differing(line, ad):
    """The numbers of the results of a line that are not NumPy's."""
    with numpy.errstate(all="ignore"):
        theirs = line(numpy)
    ours = [x.get() for x in line(ad)]
    bad = []
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        low = a.dtype.name in ("float16", "float32", "complex64")
        with numpy.errstate(all="ignore"):
            close = numpy.allclose(a, b, 2e-2 if a.dtype == "float16" else 2e-3 if low else 1e-7, 1e-3 if low else 1e-9,
                                   equal_nan=True)
        if a.shape != numpy.shape(b) or not close:
            bad.append(i)
    return bad


def compute(ad, families):
    """Everything, or some families; how many lines differed."""
    failed = 0
    for family, lines in FAMILIES.items():
        if families and family not in families:
            continue
        begin = time.perf_counter()
        for name, line in lines.items():
            bad = differing(line, ad)
            if bad:
                failed += 1
                print(f"differs from NumPy: {family} {name}: {bad}", flush=True)
        print(f"  {family:<12}{time.perf_counter() - begin:8.1f} s", flush=True)
    generator = ad.random.default_rng(3)
    for name, line in RANDOM.items() if not families or "random" in families else ():
        if not numpy.isfinite(line(generator).get()).all():
            failed += 1
            print(f"random {name}: not finite")
    return failed


def plain_backend(build, folder):
    """The option for a backend without descriptors, which initcheck needs."""
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{TOP}", f'-DCUDA_BACKEND="{build}/bin/libarrayd-cuda.so"', "-o",
                    f"{folder}/libarrayd-cuda.so", TOP / "tests/gpu/plain.c", "-ldl"], check=True)
    return f"--backend-path={folder}"


def check(tool, build, families):
    """Failed lines and errors that a tool found."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["compute-sanitizer", "--tool", tool, "--target-processes", "all", "--log-file", f"{folder}/%p.log"]
        # Below the tool two threads that load kernels may wait for each other for ever.
        os.environ["CUDA_MODULE_LOADING"] = "EAGER"
        options = [plain_backend(build, folder)] if tool == "initcheck" else []
        server = bench.start_server(build / "bin" / "arrayd", f"{folder}/arrayd.sock", "cuda", command, options)
        try:
            import arrayd
            arrayd.connect(f"unix:{folder}/arrayd.sock")
            arrayd.zeros(1).get()
            time.sleep(3)  # libraries are loaded by a thread of the backend's, soon after it has begun
            failed = compute(arrayd, families)
        finally:
            server.terminate()
            server.wait(timeout=120)
        text = "".join(path.read_text(errors="replace") for path in pathlib.Path(folder).glob("*.log"))
    # A worker that is told to end does not stay for the tool's summary: every line but the header counts.
    found = re.findall(r"^=========\s+(?!COMPUTE-SANITIZER|.*SUMMARY: 0 )\S.*", text, re.M)
    print("\n".join(found[:200]))
    attached = "COMPUTE-SANITIZER" in text
    print(f"{tool:<10} {failed} lines differ, {len(found)} complaints{'' if attached else ', NOT ATTACHED'}", flush=True)
    return failed + len(found) + (not attached)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release", type=pathlib.Path)
    parser.add_argument("--tool", action="append", choices=TOOLS)
    parser.add_argument("--family", action="append", choices=[*FAMILIES, "random"])
    options = parser.parse_args()
    build = options.build.resolve()
    sys.path.insert(0, str(build / "python"))
    os.environ.pop("ARRAYD_URL", None)
    return 1 if sum(check(tool, build, options.family) for tool in options.tool or TOOLS) else 0


if __name__ == "__main__":
    sys.exit(main())
