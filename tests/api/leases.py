"""What the server says of exported memory."""
import time

import arrayd as ad


def exports(number):
    """So many stand, as soon as the server has noticed what is over."""
    end = time.monotonic() + 60
    while ad.stat()["exports"] != number:
        assert time.monotonic() < end, ad.stat()["exports"]
