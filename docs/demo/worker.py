"""One of the demo's processes: runs its step under NumPy or under arrayd whenever the demo tells it to.

Reads a line "numpy" or "arrayd" from standard input, runs the step, and answers with a line of JSON: milliseconds,
and after "arrayd" how the result compares with NumPy's.
"""
import json
import pathlib
import sys
import time

import numpy
from PIL import Image, ImageDraw, ImageFont

import arrayd
from steps import CAPTIONS, STEPS


def compare(result, expected):
    """Largest difference, and whether the images are the same but for rounding at a few pixels."""
    difference = numpy.abs(result.astype("int64") - expected.astype("int64"))
    return int(difference.max()), bool((difference > 1).mean() < 1e-4)


def save_pair(before, after, name, path):
    """The photograph before and after, side by side, with captions."""
    height, width, gap, room = *before.shape[:2], 12, 34
    picture = Image.new("RGB", (2 * width + 3 * gap, height + room + gap), "white")
    font = ImageFont.load_default(18)
    for i, (image, caption) in enumerate(((before, "before"), (after, f"after: {CAPTIONS[name]}"))):
        left = gap + i * (width + gap)
        picture.paste(Image.fromarray(image), (left, room))
        ImageDraw.Draw(picture).text((left, 6), caption, "black", font)
    picture.save(path)


def main():
    name, out = sys.argv[1], pathlib.Path(sys.argv[2])
    image = numpy.asarray(Image.open(pathlib.Path(__file__).with_name("photograph.jpg")))
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
            save_pair(image, result, name, out / f"{name}.png")
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
