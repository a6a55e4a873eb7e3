"""European options: the prices of Black and Scholes, and those of a Monte Carlo simulation beside them.

option_prices.py [--options N] [--paths P] [--seed S] [--library arrayd]: prints the mean call price by formula, that of the
simulation of one option and its formula, and the time.
"""
import argparse
import importlib
import math
import time

RATE, VOLATILITY = 0.02, 0.3  # a year


def normal_cdf(xp, x):
    """Distribution function of the normal distribution, to 7.5e-8: Abramowitz and Stegun, 26.2.17."""
    t = 1 / (1 + 0.2316419 * xp.abs(x))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = xp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi) * series
    return xp.where(x < 0, tail, 1 - tail)


def black_scholes(xp, price, strike, years):
    """Prices of the calls and of the puts, arrays of one shape."""
    spread = VOLATILITY * xp.sqrt(years)
    d1 = (xp.log(price / strike) + (RATE + 0.5 * VOLATILITY**2) * years) / spread
    d2 = d1 - spread
    discounted = strike * xp.exp(-RATE * years)
    call = price * normal_cdf(xp, d1) - discounted * normal_cdf(xp, d2)
    return call, call - price + discounted


def simulate(xp, price, strike, years, paths, seed):
    """The price of one call as the mean over simulated paths, and its standard error."""
    rng = xp.random.default_rng(seed)
    end = price * xp.exp((RATE - 0.5 * VOLATILITY**2) * years
                         + VOLATILITY * math.sqrt(years) * rng.standard_normal(paths, dtype="float32"))
    gain = xp.maximum(end - strike, 0) * math.exp(-RATE * years)
    return gain.mean(dtype="float64"), gain.std(dtype="float64") / math.sqrt(paths)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--options", type=int, default=4_000_000)
    parser.add_argument("--paths", type=int, default=50_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--library", default="arrayd")
    options = parser.parse_args()
    xp = importlib.import_module(options.library)
    import numpy
    rng = numpy.random.default_rng(options.seed)
    price, strike, years = (xp.asarray(rng.uniform(low, high, options.options))
                            for low, high in ((5, 30), (1, 100), (0.25, 10)))
    begin = time.perf_counter()
    call, _ = black_scholes(xp, price, strike, years)
    mean = float(call.mean())
    simulated, error = (float(x) for x in simulate(xp, 20.0, 22.0, 2.0, options.paths, options.seed))
    one = (xp.full(1, v) for v in (20.0, 22.0, 2.0))
    exact = float(black_scholes(xp, *one)[0][0])
    print(f"calls {mean:.6f} simulated {simulated:.5f} +- {error:.5f} exact {exact:.5f} {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
