"""Principal components and a logistic regression, of a table with gaps."""
import cupy as cp
import numpy as np

rng = np.random.default_rng(7)
table = rng.normal(size=(500, 6)) @ rng.normal(size=(6, 6)) + rng.normal(size=6)
table[rng.random(table.shape) < 0.02] = np.nan
X = cp.asarray(table)
print("gaps", int(cp.isnan(X).sum()))
means = cp.nanmean(X, axis=0)
rows, columns = cp.where(cp.isnan(X))
X[rows, columns] = means[columns]
X = (X - X.mean(axis=0, keepdims=True)) / X.std(axis=0, keepdims=True)
covariance = cp.cov(X, rowvar=False)
values, vectors = cp.linalg.eigh(covariance)
order = cp.argsort(values)[::-1]
values, vectors = values[order], vectors[:, order]
_, s, vh = cp.linalg.svd(X, full_matrices=False)
assert cp.allclose(s ** 2 / (len(X) - 1), values)
assert cp.allclose(cp.abs(cp.einsum("ij,jk->ik", vh, vectors)), cp.eye(6), atol=1e-7)
print(values, float((values / values.sum())[:2].sum()))
print(cp.corrcoef(X.T)[0])

truth = cp.asarray(rng.normal(size=6))
y = (X @ truth + cp.asarray(rng.logistic(size=500)) > 0).astype(cp.float_)
w = cp.zeros(6)
for _ in range(300):
    p = 1 / (1 + cp.exp(-X @ w))
    w -= 0.5 * (X.T @ (p - y)) / y.size
loss = -cp.mean(cp.log(cp.where(y == 1, p, 1 - p)))
print(w, float(loss), cp.percentile(p, [5, 50, 95]))
least, residual, rank, _ = cp.linalg.lstsq(X, y, rcond=None)
print(least, int(rank), np.round(cp.asnumpy(cp.linalg.qr(X)[1].diagonal()) ** 2, 6))
