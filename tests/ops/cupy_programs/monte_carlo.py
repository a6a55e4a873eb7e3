"""The price of an option and pi by drawing random numbers; what is printed is right to a few thousandths."""
import cupy as cp
import numpy as np

cp.random.seed(0)


def monte_carlo(asset, strike, years, rate, volatility, n_paths, n_steps):
    dt = years / n_steps
    returns = cp.random.normal((rate - volatility ** 2 / 2) * dt, volatility * np.sqrt(dt), (n_steps, n_paths))
    price = asset * cp.exp(returns.cumsum(axis=0))
    payoff = cp.maximum(price[-1] - strike, 0)
    average = cp.maximum(price.mean(axis=0) - strike, 0)
    discount = np.exp(-rate * years)
    return float(payoff.mean() * discount), float(average.mean() * discount)


european, asian = monte_carlo(100.0, 105.0, 1.0, 0.03, 0.2, 200000, 12)
print(european / 100, asian / 100)
inside = 0
for _ in range(4):
    x, y = cp.random.rand(500000), cp.random.rand(500000)
    inside += int(cp.count_nonzero(cp.square(x) + cp.square(y) < 1))
print(4 * inside / 2000000)
state = cp.random.RandomState(3)
print([round(float(a.mean()), 1) + 0.0 for a in (state.exponential(2.0, 400000), state.randint(0, 11, 400000))])
rng = cp.random.default_rng(3)
print(float(rng.standard_normal(1000000).std()), float(rng.gamma(2.0, size=1000000).mean()) / 10)
print(sorted(cp.random.permutation(5).tolist()), cp.random.choice(cp.arange(3), 7).shape)
