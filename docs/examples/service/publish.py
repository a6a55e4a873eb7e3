"""Publish the index for the workers of app.py: publish.py FILE.npy [NAME]"""
import sys

import numpy

import arrayd


def main():
    """The name outlives this process."""
    name = sys.argv[2] if len(sys.argv) > 2 else "index"
    arrayd.publish(name, arrayd.asarray(numpy.load(sys.argv[1], mmap_mode="r")))
    print(f"published as {name}")


if __name__ == "__main__":
    main()
