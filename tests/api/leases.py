"""Reads what the server says of exported memory."""
import time

import arrayd as ad


def exports(number):
    """Wait until so many exports stand: the server notices with a delay that one is over."""
    end = time.monotonic() + 60
    while ad.stat()["exports"] != number:
        assert time.monotonic() < end, ad.stat()["exports"]
