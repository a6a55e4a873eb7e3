"""A mixture of Gaussians by expectation and maximisation, as in CuPy's examples."""
import math

import cupy as cp
import numpy as np


def estimate_log_prob(X, inv_cov, means):
    xp = cp.get_array_module(X)
    n_features = X.shape[1]
    log_det = xp.sum(xp.log(inv_cov), axis=1)
    precisions = inv_cov ** 2
    log_prob = xp.sum((means ** 2 * precisions), 1) - 2 * xp.dot(X, (means * precisions).T)
    log_prob += xp.dot(X ** 2, precisions.T)
    return -0.5 * (n_features * math.log(2 * np.pi) + log_prob) + log_det


def m_step(X, resp):
    xp = cp.get_array_module(X)
    nk = xp.sum(resp, axis=0)
    means = xp.dot(resp.T, X) / nk[:, None]
    X2 = xp.dot(resp.T, X * X) / nk[:, None]
    covariances = X2 - means ** 2
    return nk / len(X), means, covariances


def e_step(X, inv_cov, means, weights):
    xp = cp.get_array_module(X)
    weighted = estimate_log_prob(X, inv_cov, means) + xp.log(weights)
    log_prob_norm = xp.log(xp.sum(xp.exp(weighted), axis=1))
    log_resp = weighted - log_prob_norm[:, None]
    return xp.mean(log_prob_norm), log_resp


def train_gmm(X, max_iter, tol, means, covariances):
    xp = cp.get_array_module(X)
    lower_bound = -np.inf
    converged = False
    weights = xp.array([0.5, 0.5], dtype=np.float32)
    inv_cov = 1 / xp.sqrt(covariances)
    for _ in range(max_iter):
        prev_lower_bound = lower_bound
        log_prob_norm, log_resp = e_step(X, inv_cov, means, weights)
        weights, means, covariances = m_step(X, xp.exp(log_resp))
        inv_cov = 1 / xp.sqrt(covariances)
        lower_bound = log_prob_norm
        if abs(lower_bound - prev_lower_bound) < tol:
            converged = True
            break
    assert converged
    return inv_cov, means, weights, covariances


def predict(X, inv_cov, means, weights):
    return (estimate_log_prob(X, inv_cov, means) + cp.log(weights)).argmax(axis=1)


rng = np.random.RandomState(0)
mean1, mean2 = rng.normal(0, 4, 2), rng.normal(0, 4, 2) + 5
X = np.r_[rng.normal(mean1, 1, (2000, 2)), rng.normal(mean2, 1.5, (2000, 2))]
y = np.repeat([0, 1], 2000)
X_gpu, y_gpu = cp.array(X), cp.array(y)
means = cp.stack([X_gpu[0], X_gpu[-1]])
inv_cov, means, weights, cov = train_gmm(X_gpu, 100, 1e-6, means, cp.full((2, 2), 4.0))
pred = predict(X_gpu, inv_cov, means, weights)
print("accuracy", float(cp.mean(pred == y_gpu)))
for row in (means, weights, cov):
    print(cp.around(row, 6))
