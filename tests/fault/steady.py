"""Computes with arrays and compares with NumPy (storm.py) until its standard input ends: nothing may be lost.

steady.py URL SEED MOST: prints as JSON how much it did, and the longest that a step took."""
import json
import sys
import threading
import time

import arrayd as ad
from storm import SIZES, Program


def main(url, seed, most):
    ad.connect(url)
    program = Program(seed, [n for n in SIZES if n <= most])
    for _ in range(5):
        program.upload()
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    print("begun", flush=True)
    longest = 0.0
    while not over.is_set():
        begin = time.monotonic()
        program.step()
        longest = max(longest, time.monotonic() - begin)
    for _ in range(50):
        program.compare()
    assert not program.lost, f"{program.lost} arrays are lost"
    print(json.dumps({"operations": program.operations, "compared": program.compared, "longest": longest,
                      "resumes": ad.stat()["resumes"]}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
