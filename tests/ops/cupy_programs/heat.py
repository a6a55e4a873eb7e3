"""Heat in a plate, life on a torus and waves of a signal: slices, rolls and Fourier transforms."""
import cupy as cp
import cupy.fft
import numpy as np

u = cp.zeros((64, 64), dtype=cp.float32)
u[24:40, 24:40] = 100
mask = cp.ones_like(u, dtype=bool)
mask[[0, -1], :] = mask[:, [0, -1]] = False
for step in range(200):
    laplace = (cp.roll(u, 1, 0) + cp.roll(u, -1, 0) + cp.roll(u, 1, 1) + cp.roll(u, -1, 1) - 4 * u)
    u += cp.where(mask, 0.2 * laplace, cp.float32(0))
print(u.dtype, float(u.max()), float(u.mean()), cp.unravel_index(int(u.argmax()), u.shape)[0] in (31, 32))

cells = cp.asarray(np.random.default_rng(2).random((96, 96)) < 0.3).astype(cp.int8)
for _ in range(50):
    neighbours = sum(cp.roll(cells, (i, j), axis=(0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    cells = ((neighbours == 3) | ((cells == 1) & (neighbours == 2))).astype(cp.int8)
print(int(cells.sum()), cells[:4].sum(axis=1).tolist())

t = cp.linspace(0, 1, 1024, endpoint=False)
signal = cp.sin(2 * cp.pi * 50 * t) + 0.5 * cp.sin(2 * cp.pi * 120 * t) + 0.1 * cp.cos(2 * cp.pi * 300 * t)
spectrum = cp.fft.rfft(signal)
frequencies = cp.fft.rfftfreq(t.size, d=1 / 1024)
peaks = cp.sort(frequencies[cp.argsort(cp.abs(spectrum))[-3:]])
print(peaks)
spectrum[frequencies > 100] = 0
filtered = cupy.fft.irfft(spectrum)
print(bool(cp.allclose(filtered, cp.sin(2 * cp.pi * 50 * t), atol=1e-6)), float(cp.trapz(filtered ** 2, t)))
image = cp.outer(cp.hanning(32), cp.hamming(24))
shifted = cp.fft.fftshift(cp.fft.fft2(image))
print(shifted.shape, float(cp.abs(shifted).sum()), cp.allclose(cp.fft.ifft2(cp.fft.ifftshift(shifted)).real, image))
