"""k-means, as in CuPy's examples: masks choose the points of a cluster, and the loop stops when nothing moves."""
import argparse
import contextlib
import time

import cupy
import numpy as np


@contextlib.contextmanager
def timer(message):
    cupy.cuda.Stream.null.synchronize()
    start = time.time()
    yield
    cupy.cuda.Stream.null.synchronize()
    assert time.time() >= start, message


def fit_xp(X, n_clusters, max_iter):
    assert X.ndim == 2
    xp = cupy.get_array_module(X)
    pred = xp.zeros(len(X), dtype=np.int32)
    centers = X[np.arange(n_clusters) * (len(X) // n_clusters)]
    for _ in range(max_iter):
        distances = xp.linalg.norm(X[:, None, :] - centers[None, :, :], axis=2)
        new_pred = xp.argmin(distances, axis=1).astype(np.int32)
        if xp.all(new_pred == pred):
            break
        pred = new_pred
        i = xp.arange(n_clusters)
        mask = pred == i[:, None]
        sums = xp.where(mask[:, :, None], X, 0).sum(axis=1)
        counts = xp.count_nonzero(mask, axis=1).reshape((n_clusters, 1))
        centers = sums / counts
    return centers, pred


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu-id", "-g", default=0, type=int)
    parser.add_argument("--n-clusters", "-n", default=3, type=int)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    samples = np.concatenate([rng.normal(c, 1, (400, 2)) for c in ((0, 0), (6, 1), (-2, 8))]).astype(np.float32)
    with cupy.cuda.Device(args.gpu_id):
        X_train = cupy.asarray(samples)
        with timer("GPU"):
            centers, pred = fit_xp(X_train, args.n_clusters, 50)
    for i in range(args.n_clusters):
        own = X_train[pred == i]
        print(len(own), own.mean(axis=0), float(own.std()))
    print(cupy.asnumpy(centers[cupy.argsort(centers[:, 0])]))


if __name__ == "__main__":
    main()
