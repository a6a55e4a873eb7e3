"""`python -m arrayd` says which server programs here use, and what to do where that is not as it should be."""
import sys

from ._doctor import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
