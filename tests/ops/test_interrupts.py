"""Ctrl-C and cancel: what has been sent and not begun is not executed, and the next statement is answered at once.

The first operation of each program would take days, so that what is behind it has certainly not begun.
"""
import pytest

from test_core_sessions import run
import arrayd as ad

cpu_only = pytest.mark.skipif("ad.session_info()['backend'] != 'cpu'",
                              reason="a GPU computes what it has been given")

BEGIN = """
import arrayd as ad, numpy as np, os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is begun without it
a, kept = ad.asarray(np.full((64, 64), 2.0)), ad.asarray(np.arange(5))
changed = ad.asarray(np.arange(5))
ad.sync()
endless = ad.broadcast_to(a[:1, :1], (1 << 22, 1 << 22)).sum()
products = [a @ a for _ in range(12)]
changed += 1

def press_ctrl_c(waits):
    while ad.session_info()["round_trips"] == waits:  # until the main thread waits for the server
        pass
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

def cancelled(x):
    try:
        x.get()
    except ad.CancelledError:
        return True
"""


@cpu_only
def test_ctrl_c_cancels_what_has_been_sent(own_server):
    _, url = own_server("--threads", "1")
    assert run(BEGIN + """
threading.Thread(target=press_ctrl_c, args=[ad.session_info()["round_trips"]]).start()
try:
    endless.item()
except KeyboardInterrupt:
    print("interrupted", end=" ")
print((kept + 1).get().tolist(), ad.stat()["cancelled"], all(map(cancelled, [endless, *products, changed])),
      (a @ a)[0, 0].item())
""", url=url) == "interrupted [1, 2, 3, 4, 5] 14 True 256.0"


@cpu_only
def test_programs_cancel_by_themselves(own_server):
    _, url = own_server("--threads", "1")
    assert run(BEGIN + """
ad.cancel()
print((kept + 1).get().tolist(), ad.stat()["cancelled"], all(map(cancelled, [endless, *products, changed])))
""", url=url) == "[1, 2, 3, 4, 5] 14 True"


@cpu_only
def test_an_interactive_line(own_server):
    """Ctrl-C in a line that does not wait for the server: the interpreter shows it, and the operations end."""
    _, url = own_server("--threads", "1")
    program = BEGIN + """
import sys
signal.raise_signal(signal.SIGINT)
"""
    assert run(f"""
import code, sys
sys.ps1 = ">>> "
shell = code.InteractiveConsole()
shell.push('import arrayd as ad')
hook = sys.excepthook
shell.runcode(compile({program!r}, "<line>", "exec"))
sys.excepthook = hook
ad = sys.modules["arrayd"]
n = shell.locals
print((n["kept"] + 1).get().tolist(), ad.stat()["cancelled"], n["cancelled"](n["products"][0]))
""", url=url) == "[1, 2, 3, 4, 5] 14 True"


def test_an_exception_of_ones_own_cancels_nothing(own_server):
    _, url = own_server("--threads", "1")
    assert run("""
import arrayd as ad, signal
class Mine(Exception): pass
def handler(*_): raise Mine
a = ad.ones((300, 300))
ad.sync()
signal.signal(signal.SIGALRM, handler)
for _ in range(300):
    a = a @ a * 1e-3
signal.setitimer(signal.ITIMER_REAL, 0.001)
try:
    while True:
        a.get()
except Mine:
    pass
a.get()
print(ad.stat()["cancelled"])
""", url=url) == "0"


def test_ctrl_c_while_a_place_is_noted(own_server):
    """The interrupt comes in the package's own function, whose errors nobody is told, and is not lost."""
    _, url = own_server()
    assert run("""
import arrayd as ad, signal
from arrayd import _core
signal.signal(signal.SIGINT, signal.default_int_handler)
a = ad.ones(3)
ad.sync()
def note(session, number):
    _core.watch_operations(None, None)
    signal.raise_signal(signal.SIGINT)
_core.watch_operations(note, lambda number: "here")
try:
    (a + 1).get()
    for _ in range(1000):
        pass
except KeyboardInterrupt:
    print("interrupted", (a + 1).tolist())
""", url=url) == "interrupted [2.0, 2.0, 2.0]"


def test_cancelling_nothing():
    x = ad.arange(5)
    ad.sync()
    before = ad.stat()["cancelled"]
    ad.cancel()
    assert x.tolist() == [0, 1, 2, 3, 4] and ad.stat()["cancelled"] == before
    assert issubclass(ad.CancelledError, ad.ArraydError)
