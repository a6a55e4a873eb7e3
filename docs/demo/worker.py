"""One of the demo's processes: runs its step under NumPy or under arrayd whenever the demo tells it to.

Reads a line "numpy" or "arrayd" from standard input, runs the step, and answers with a line of JSON: milliseconds,
and after "arrayd" how the result compares with NumPy's.
"""
import json
import pathlib
import sys
import time

import numpy
import skimage.data
from PIL import Image

import arrayd
from steps import STEPS


def compare(result, expected):
    """Largest difference, and whether the images are the same but for rounding at a few pixels."""
    difference = numpy.abs(result.astype("int64") - expected.astype("int64"))
    return int(difference.max()), bool((difference > 1).mean() < 1e-4)


def main():
    name, out = sys.argv[1], pathlib.Path(sys.argv[2])
    image = skimage.data.astronaut()
    expected = None
    for line in sys.stdin:
        which = line.strip()
        begin = time.perf_counter()
        if which == "numpy":
            expected = STEPS[name](numpy, image)
            answer = {"ms": (time.perf_counter() - begin) * 1e3}
        else:
            result = arrayd.asnumpy(STEPS[name](arrayd, image))
            answer = {"ms": (time.perf_counter() - begin) * 1e3}
            answer["difference"], answer["same"] = compare(result, expected)
            Image.fromarray(result).save(out / f"{name}.png")
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
