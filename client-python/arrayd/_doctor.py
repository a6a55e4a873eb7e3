"""The report of `python -m arrayd`: the server that programs use and why not another, what it can do, what is missing."""
import difflib
import importlib.metadata
import os
import pathlib
import platform
import re
import statistics
import sys
import textwrap
import time

import numpy

from . import _core
from ._notebook.display import format_size

USAGE = """usage: python -m arrayd [URL]

Says which server a program would use here and why not another one, measures it, and says what to do where something is
missing. URL (as for ARRAYD_URL): look at this server instead. Exit status: 0 a server computes, 1 none does, 2 wrong usage.
"""
# Extras of `pip install "arrayd[NAME]"`: the package by which one is known to be there, and its purpose.
EXTRAS = {"scipy": ("scipy", "some functions of arrayd.scipy"), "bfloat16": ("ml_dtypes", "bfloat16 in NumPy arrays")}
DEVICES = pathlib.Path("/dev/nvidiactl")
DRIVER = pathlib.Path("/proc/driver/nvidia/version")
ROUNDS = 200
# Variables that the client reads; the others are called as the server's options.
_PREFIX = "ARRAYD_"
VARIABLES = [_PREFIX + name for name in "URL NAME BIN TOKEN TOKEN_FILE CA CERT KEY GROUP_KEY GROUP_TRANSPORT "
                                          "NCCL_LIBRARY PINNED TF32 SITES PROGRESS IMPLICIT TOP_SECONDS FUSE".split()]


def find_version(package):
    """The version of an installed package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


class Report:
    """Sections of lines, printed as they come, and the advice for the end."""

    def __init__(self, file):
        self.file, self.advice = file, []

    def title(self, text):
        print(f"\n{text}", file=self.file, flush=True)

    def line(self, name, value):
        indent = " " * 20
        text = textwrap.fill(str(value), 118, initial_indent=f"  {name:<18}", subsequent_indent=indent,
                             break_long_words=False, break_on_hyphens=False)
        print(text, file=self.file, flush=True)

    def advise(self, text):
        self.advice.append(text)

    def close(self):
        """Print the advice."""
        self.title("What to do")
        for text in self.advice or ["Nothing: all is well."]:
            print(textwrap.fill(text, 118, initial_indent="  - ", subsequent_indent="    ", break_long_words=False,
                                break_on_hyphens=False), file=self.file)


# ---- which server ----

def hide_token(url):
    """A url without the token that an invitation has: tls://...@host:port#sha256:..."""
    return re.sub(r"//[^@]*@", "//...@", url)


def try_server(url):
    """Connect to it: why that is not possible, or None."""
    try:
        _core.connect(url)
    except (_core.ArraydError, OSError, ValueError) as error:
        return error
    return None


def choose_server(report, url):
    """Try the addresses as a program does, and say what comes of each. The one that is used, or None."""
    addresses = [url] if url else _core.addresses()
    named = "the command line names it" if url else "ARRAYD_URL names it" if os.environ.get("ARRAYD_URL") else None
    report.title("Which server")
    report.line("ARRAYD_URL", hide_token(os.environ.get("ARRAYD_URL", "")) or "not set: the well-known places are tried in turn")
    for i, secret in enumerate(addresses):
        error, address = try_server(secret), hide_token(secret)
        if error is None:
            report.line("used", f"{address}, {named}" if named else address)
            for other in addresses[i + 1:]:
                report.line("not needed", other)
            return address
        why = str(error).partition("; `arrayd --socket")[0]  # what to do stands below
        report.line("not usable", f"{address}: {why}" if address not in why else why)
        if not isinstance(error, ConnectionError):  # then a program goes on to the next place
            break
    report.advise("No server can be used; the lines above say why. Start one (`arrayd &`, or as root `systemctl start "
                  'arrayd`), or install one for programs of their own: pip install "arrayd[server]".')
    return None


def describe_owner(report, address):
    """Say whose the server is."""
    if address.startswith("embedded:"):
        report.line("whose", "this program's alone; it ends with it")
        report.advise("Each program here starts a server of its own. To share arrays between programs, run `arrayd &` "
                      "before them; they find it by themselves.")
        return
    report.line("whose", "of everybody who may open that address")


# ---- the server ----

def measure(work, rounds=ROUNDS):
    """The median of the seconds that it takes."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def check_computing(report):
    """Whether the server's results are NumPy's, which is compared with a sum, a product and a comparison."""
    import arrayd
    host = numpy.linspace(0, 1, 10000, dtype="float32").reshape(100, 100)
    try:
        x = arrayd.asarray(host)
        good = numpy.allclose((x @ x).get(), host @ host, rtol=1e-4) and int((x > 0.5).sum()) == int((host > 0.5).sum())
    except (_core.ArraydError, OSError, MemoryError) as error:
        report.line("computes", f"no: {error}")
        report.advise("The server takes connections but does not compute; its log says why.")
        return False
    report.line("computes", "yes, as NumPy" if good else "WRONG results")
    if not good:
        report.advise("The server computes other numbers than NumPy: please report this, with these lines.")
    return good


def measure_server(report):
    """Say what calls and copies cost here."""
    import arrayd
    a = arrayd.asarray(numpy.ones(16, "float32"))
    large = numpy.ones(1 << 24, "uint8")
    report.line("round trip", f"{measure(lambda: float(a.sum())) * 1e6:.0f} us (float(a.sum()) of 16 elements)")
    _core.sync()
    report.line("`a + b`", f"{measure(lambda: a + a) * 1e6:.2f} us until it returns")
    _core.sync()
    there = arrayd.asarray(large)
    up = measure(lambda: arrayd.asarray(large).sum().get(), 5)
    down = measure(lambda: there.get(), 5)
    report.line("copies", f"{large.nbytes / up / 1e9:.1f} GB/s to the server, {large.nbytes / down / 1e9:.1f} GB/s back "
                          f"({format_size(large.nbytes)})")


def describe_limits(report, counters):
    """Say what this program may take."""
    limits = {"session": counters.get("session_limit"), "principal": counters.get("principal_limit")}
    text = ", ".join(f"{format_size(n)} of memory for this {who}" for who, n in limits.items() if n)
    report.line("limits", text or "none of this program's own")
    report.line("in use", f"{format_size(counters.get('used_bytes', 0))} by {counters.get('sessions', 1)} session(s)")


def describe_server(report):
    """Say what the server is, what it may and what it costs; whether it computes."""
    report.title("The server")
    info = _core.session_info()
    report.line("version", info["server"])
    if info["server"].split()[-1] != _core.version():
        report.advise(f"The server is {info['server']}, this package {_core.version()}: install the same version of both.")
    devices = f", {info['devices']} devices" if info["devices"] > 1 else ""
    report.line("backend", f"{info['backend']} ({info['device_name']}{devices}), {format_size(info['memory'])} of memory")
    report.line("own kernels", "allowed" if info["kernels"] else "not allowed (the server's option kernels)")
    if not check_computing(report):
        return False
    measure_server(report)
    describe_limits(report, _core.stat())
    return True


# ---- the machine ----

def describe_gpu(report, backend):
    """Say whether there is a GPU and its backend, where the server runs on this machine."""
    library = pathlib.Path(__file__).parent / "bin" / "libarrayd-cuda.so"
    if not DEVICES.exists():
        report.line("GPU", f"none of NVIDIA's here ({DEVICES} is not there)")
        return
    driver = DRIVER.read_text().splitlines()[0] if DRIVER.exists() else "driver of unknown version"
    report.line("GPU", driver)
    report.line("CUDA backend", library if library.exists() else "not installed with this package")
    if backend == "cpu" and not library.exists():
        report.advise('There is a GPU, but the server runs on the CPU: pip install "arrayd[cuda]".')
    elif backend == "cpu":
        report.advise("There is a GPU, but the server runs on the CPU. Connecting to embedded:cuda says why "
                      "(`python -m arrayd embedded:cuda`).")


def describe_extras(report):
    """Say which optional packages are there."""
    for name, (package, purpose) in EXTRAS.items():
        version = find_version(package)
        report.line(package, version or f'not installed ({purpose}): pip install "arrayd[{name}]"')


def _find_similar(word, words):
    """The words that this one was probably meant to be: of the same letters, which a short word shows best, or nearly so."""
    return [each for each in words if sorted(each) == sorted(word)] or difflib.get_close_matches(word, words, 1, 0.8)


def find_misspelt_variables():
    """Pairs of a variable ARRAYD_... that nothing reads, and the name that was probably meant."""
    known = VARIABLES + [f"{_PREFIX}{name.upper().replace('-', '_')}" for name in _core.options()]
    strange = sorted(name for name in os.environ if name.startswith(_PREFIX) and name not in known)
    ends = [name.removeprefix(_PREFIX) for name in known]  # what all begin with would make all of them alike
    return [(name, _PREFIX + near[0]) for name in strange if (near := _find_similar(name.removeprefix(_PREFIX), ends))]


def describe_machine(report, backend):
    """Say what there is besides the server."""
    report.title("This machine")
    describe_gpu(report, backend)
    describe_extras(report)
    for name, meant in find_misspelt_variables():
        report.advise(f"Nothing reads the variable {name}; did you mean {meant}?")


def main(arguments):
    """Print the report; the exit status."""
    if arguments and (arguments[0].startswith("-") or len(arguments) > 1):
        wanted = arguments[0] in ("-h", "--help")
        print(USAGE, end="", file=sys.stdout if wanted else sys.stderr)
        return 0 if wanted else 2
    report = Report(sys.stdout)
    print(f"arrayd {_core.version()}, NumPy {numpy.__version__}, Python {platform.python_version()}, "
          f"{platform.system()} {platform.machine()}\n{pathlib.Path(__file__).parent}")
    address = choose_server(report, arguments[0] if arguments else None)
    good = False
    if address:
        describe_owner(report, address)
        good = describe_server(report)
    describe_machine(report, _core.session_info()["backend"] if address else None)
    report.close()
    return 0 if good else 1
