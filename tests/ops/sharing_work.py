"""Processes of a pool do this with the arrays that they are handed."""
import numpy as np

import arrayd as ad
from patience import PATIENCE


def total(a):
    return float(a.sum()), ad.session_info()["session"], type(a) is ad.ndarray


def change(a):
    """Change the child's own copy, and give it back."""
    a += 1
    return a


def double(a):
    return a * 2


def views(a):
    return a[::2, 1:].T, a.T, a


def named(name):
    a = ad.attach(name)
    try:
        a += 1
    except ValueError:
        return float(a.sum()), "read-only"
    return float(a.sum()), "written"


INHERITED = {}


def inherited(key):
    return float(INHERITED[key].sum()), np.asarray((INHERITED[key][:3] * 2).get()).tolist()


def worker(inbox, outbox):
    """Takes arrays until None comes."""
    while (a := inbox.get(timeout=PATIENCE)) is not None:
        a *= 10
        outbox.put(a)
