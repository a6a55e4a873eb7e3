"""Steps of the demo on a photograph (NASA's of Eileen Collins, in the public domain). `xp` is numpy or arrayd: each
function is written once and runs under both."""
import numpy


def quantise(xp, image, colours=16, iterations=12):
    """k-means colour quantisation: the image in its `colours` most telling colours."""
    pixels = xp.asarray(image.reshape(-1, 3).astype("float64"))
    brightness = image.reshape(-1, 3).sum(axis=1, dtype="int64")
    first = numpy.argsort(brightness, kind="stable")[numpy.linspace(0, len(brightness) - 1, colours).astype("int64")]
    centres = pixels[xp.asarray(first)]
    for _ in range(iterations):
        label = _nearest(xp, pixels, centres)
        number = xp.bincount(label, minlength=colours)
        total = xp.stack([xp.bincount(label, weights=pixels[:, c], minlength=colours) for c in range(3)], axis=1)
        centres = xp.where(number[:, None] > 0, total / xp.maximum(number, 1)[:, None], centres)
    return _to_bytes(xp, centres[_nearest(xp, pixels, centres)].reshape(image.shape))


def _nearest(xp, pixels, centres):
    # |p - c|^2 without |p|^2, which is the same for every centre.
    return ((centres * centres).sum(axis=1) - 2 * (pixels @ centres.T)).argmin(axis=1)


def sharpen(xp, image, sigma=3.0, amount=1.5):
    """Unsharp mask with a separable Gaussian: one banded matrix for the rows and one for the columns."""
    planes = xp.asarray(image.astype("float32")).transpose(2, 0, 1)
    rows = _gaussian(xp, image.shape[0], sigma)
    columns = _gaussian(xp, image.shape[1], sigma)
    blurred = rows @ planes @ columns.T
    return _to_bytes(xp, (planes + amount * (planes - blurred)).transpose(1, 2, 0))


def _gaussian(xp, n, sigma):
    at = xp.arange(n, dtype="float32")
    weight = xp.exp(-((at[:, None] - at) / sigma) ** 2 / 2)
    return weight / weight.sum(axis=1, keepdims=True)


def equalise(xp, image):
    """Histogram equalisation of the brightness; colours keep their hue."""
    pixels = xp.asarray(image.astype("int64"))
    level = (pixels @ xp.asarray([299, 587, 114])) // 1000  # in integers: a sum's last bit must not decide its level
    number = xp.bincount(level.ravel(), minlength=256)
    below = xp.cumsum(number)
    least = below[number > 0][0]
    table = xp.rint((below - least) * (255.0 / (level.size - least)))
    gain = table[level] / xp.maximum(level, 1)
    return _to_bytes(xp, pixels * gain[:, :, None])


def _to_bytes(xp, values):
    return xp.clip(xp.rint(values), 0, 255).astype("uint8")


STEPS = {"quantise": quantise, "sharpen": sharpen, "equalise": equalise}
CAPTIONS = {"quantise": "in 16 colours (k-means)", "sharpen": "sharpened (unsharp mask)",
            "equalise": "brightness equalised (histogram)"}
