"""Noise taken out of a sound: short-time Fourier transform, Wiener's filter, and the way back.

denoiser.py [--seconds S] [--library arrayd|scipy|both] [--picture FILE.png]: prints the ratio of signal to noise before and
after, in decibels, and the time. The sound is a melody of plucked strings; the noise is white.
"""
import argparse
import importlib
import time

import numpy

RATE = 22050  # samples a second
WINDOW = 1024


def libraries(name):
    """NumPy's functions, scipy.signal's and scipy.ndimage's, of SciPy or of arrayd."""
    if name == "scipy":
        return numpy, *map(importlib.import_module, ("scipy.signal", "scipy.ndimage"))
    return tuple(map(importlib.import_module, ("arrayd", "arrayd.scipy.signal", "arrayd.scipy.ndimage")))


def melody(seconds, seed=5):
    """A clean sound and the same with noise, whose first half second is noise alone."""
    rng = numpy.random.default_rng(seed)
    at = numpy.arange(int(seconds * RATE)) / RATE
    clean = numpy.zeros(at.size)
    for begin in numpy.arange(0.5, seconds, 0.25):
        pitch = 220 * 2 ** (rng.choice([0, 2, 4, 7, 9, 12]) / 12)
        since = at - begin
        for harmonic in range(1, 7):
            clean += (since > 0) * numpy.exp(-4 * harmonic * abs(since)) * numpy.sin(
                2 * numpy.pi * pitch * harmonic * since) / harmonic
    return clean, clean + 0.2 * rng.standard_normal(at.size)


def denoise(xp, signal, ndimage, noisy):
    """The sound without most of the noise, which the first half second is a sample of."""
    _, _, spectrum = signal.stft(noisy, RATE, nperseg=WINDOW)
    power = abs(spectrum) ** 2
    frames = RATE // 2 // (WINDOW // 2) - 2
    noise = power[:, 1:frames].mean(axis=1, keepdims=True)
    smooth = ndimage.uniform_filter(power, (3, 5))
    gain = xp.maximum(1 - 1.5 * noise / smooth, 0.02)
    _, sound = signal.istft(spectrum * gain, RATE, nperseg=WINDOW)
    return sound[:noisy.shape[0]]


def ratio(xp, clean, sound):
    """The ratio of signal to noise in decibels."""
    return 10 * float(xp.log10((clean ** 2).sum() / ((sound - clean) ** 2).sum()))


def save_picture(path, *sounds):
    """The spectrograms of sounds one above the other, as a PNG."""
    from PIL import Image
    stft = importlib.import_module("scipy.signal").stft
    levels = [numpy.log10(abs(stft(sound, RATE, nperseg=WINDOW)[2][::-1]) + 1e-4) for sound in sounds]
    rows = [(numpy.clip((one + 4) / 4, 0, 1) * 255).astype(numpy.uint8) for one in levels]
    Image.fromarray(numpy.concatenate(rows)).save(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--library", default="both", choices=("arrayd", "scipy", "both"))
    parser.add_argument("--picture")
    options = parser.parse_args()
    clean, noisy = melody(options.seconds)
    for name in ("scipy", "arrayd") if options.library == "both" else (options.library,):
        xp, signal, ndimage = libraries(name)
        right, given = xp.asarray(clean), xp.asarray(noisy)
        denoise(xp, signal, ndimage, given[:2 * RATE])  # what is compiled or loaded the first time
        begin = time.perf_counter()
        sound = denoise(xp, signal, ndimage, given)
        after = ratio(xp, right, sound)
        took = time.perf_counter() - begin
        print(f"{name:8} {ratio(xp, right, given):.2f} dB before, {after:.2f} dB after {took:.3f} s")
    if options.picture:
        save_picture(options.picture, noisy, sound if isinstance(sound, numpy.ndarray) else sound.get())


if __name__ == "__main__":
    main()
