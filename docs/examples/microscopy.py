"""Bright objects of a photograph: noise and background are taken away, objects are found, numbered and measured.

microscopy.py [--image coins] [--repeat N] [--library arrayd|scipy|both] [--picture FILE.png]: prints what was found and the
time. The photograph is one that scikit-image ships; it is repeated N times along both axes.
"""
import argparse
import importlib
import time

import numpy


def libraries(name):
    """NumPy's functions and scipy.ndimage's, of SciPy or of arrayd."""
    if name == "scipy":
        return numpy, importlib.import_module("scipy.ndimage")
    return importlib.import_module("arrayd"), importlib.import_module("arrayd.scipy.ndimage")


def photograph(name, repeat):
    """A grey photograph of scikit-image as float32, repeated."""
    image = getattr(importlib.import_module("skimage.data"), name)()
    return numpy.tile(image.astype(numpy.float32), (repeat, repeat))


def otsu(xp, values):
    """The threshold that divides values into two classes with the least variance within them."""
    counts, edges = xp.histogram(values, 256)
    middles = (edges[:-1] + edges[1:]) / 2
    below, above = xp.cumsum(counts), xp.cumsum(counts[::-1])[::-1]
    mean_below = xp.cumsum(counts * middles) / below
    mean_above = (xp.cumsum((counts * middles)[::-1]) / above[::-1])[::-1]
    between = below[:-1] * above[1:] * (mean_below[:-1] - mean_above[1:]) ** 2
    return middles[xp.argmax(between)]


def find_objects(xp, ndimage, image, least=150):
    """The numbers of the objects at their places, and of each its area, brightness and centre."""
    smooth = ndimage.gaussian_filter(ndimage.median_filter(image, 3), 1.5)
    flat = smooth - ndimage.gaussian_filter(smooth, 40)
    mask = ndimage.binary_fill_holes(ndimage.binary_opening(flat > otsu(xp, flat), iterations=2))
    labels, count = ndimage.label(mask)
    areas = ndimage.sum_labels(mask, labels, xp.arange(1, int(count) + 1))
    kept = xp.flatnonzero(areas >= least) + 1
    bright = ndimage.mean(image, labels, kept)
    centres = ndimage.center_of_mass(mask, labels, kept)
    return labels, areas[kept - 1], bright, xp.asarray(numpy.array([[float(v) for v in one] for one in centres]))


def save_picture(path, image, labels):
    """The photograph beside the objects, each in a colour of its own, as a PNG."""
    from PIL import Image
    colours = numpy.random.default_rng(1).integers(60, 255, (int(labels.max()) + 1, 3), dtype=numpy.uint8)
    colours[0] = 0
    grey = numpy.repeat(image.astype(numpy.uint8)[..., None], 3, axis=-1)
    Image.fromarray(numpy.concatenate([grey, colours[labels]], axis=1)).save(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", default="coins")
    parser.add_argument("--repeat", type=int, default=4)
    parser.add_argument("--library", default="both", choices=("arrayd", "scipy", "both"))
    parser.add_argument("--picture")
    options = parser.parse_args()
    host = photograph(options.image, options.repeat)
    for name in ("scipy", "arrayd") if options.library == "both" else (options.library,):
        xp, ndimage = libraries(name)
        image = xp.asarray(host)
        find_objects(xp, ndimage, image[:64, :64])  # what is compiled or loaded the first time
        begin = time.perf_counter()
        labels, areas, bright, _ = find_objects(xp, ndimage, image)
        text = f"{areas.size} objects, mean area {float(areas.mean()):.1f}, mean brightness {float(bright.mean()):.2f}"
        print(f"{name:8} {text} {time.perf_counter() - begin:.3f} s")
    if options.picture:
        save_picture(options.picture, host, labels if isinstance(labels, numpy.ndarray) else labels.get())


if __name__ == "__main__":
    main()
