"""European options by the formula of Black and Scholes, as in CuPy's examples."""
import cupy
import numpy
from cupyx.profiler import benchmark


def cumulative_normal_distribution(d):
    xp = cupy.get_array_module(d)
    A1, A2, A3, A4, A5 = 0.31938153, -0.356563782, 1.781477937, -1.821255978, 1.330274429
    RSQRT2PI = 0.39894228040143267793994605993438
    K = 1 / (1 + 0.2316419 * xp.abs(d))
    result = RSQRT2PI * xp.exp(-0.5 * d * d) * (K * (A1 + K * (A2 + K * (A3 + K * (A4 + K * A5)))))
    return xp.where(d > 0, 1 - result, result)


def black_scholes(s, x, t, r, v):
    xp = cupy.get_array_module(s)
    sqrt_t = xp.sqrt(t)
    d1 = (xp.log(s / x) + (r + v * v / 2) * t) / (v * sqrt_t)
    d2 = d1 - v * sqrt_t
    cnd_d1, cnd_d2 = cumulative_normal_distribution(d1), cumulative_normal_distribution(d2)
    exp_rt = xp.exp(-r * t)
    call = s * cnd_d1 - x * exp_rt * cnd_d2
    put = x * exp_rt * (1 - cnd_d2) - s * (1 - cnd_d1)
    return call, put


def rand_range(rng, m, M, n):
    return cupy.asarray((m + (M - m) * rng.random(n)).astype(numpy.float64))


n = 10000
rng = numpy.random.default_rng(5)
stock_price = rand_range(rng, 5, 30, n)
option_strike = rand_range(rng, 1, 100, n)
option_years = rand_range(rng, 0.25, 10, n)
call, put = black_scholes(stock_price, option_strike, option_years, 0.02, 0.3)
print("%.8f %.8f" % (call.sum(), put.sum()))
print(call[:5], put[:5])
cupy.testing = None  # a program may set what it likes
result = benchmark(black_scholes, (stock_price, option_strike, option_years, 0.02, 0.3), n_repeat=3, n_warmup=1)
print(result.name, len(result.cpu_times), result.gpu_times.shape)
error = cupy.abs((call - put) - (stock_price - option_strike * cupy.exp(-0.02 * option_years)))
print("parity holds:", bool((error < 1e-9).all()))
