"""The connection to the server."""
import os
import sys

from . import _core


def connect(url=None, *, token=None, ca=None, cert=None, key=None, name=None):
    """Connect to a server; what follows runs there. Without it the first operation connects.

    Parameters: url: "unix:/path", "tcp:host:port", "tls:host:port", "embedded:auto", "embedded:cpu" or "embedded:cuda", or what
    an administrator has sent ("tls://token@host:port#sha256:pin", of arrayctl invite); unless given
    $ARRAYD_URL, then the user's and the system's well-known socket, then an embedded server of this process.
    token: str that lets one in at tcp: and tls:; unless given $ARRAYD_TOKEN, then what the file $ARRAYD_TOKEN_FILE or
    ~/.config/arrayd/token holds (unless there is a certificate to show). No message shows it.
    ca: path of the authorities (PEM) one of which must have signed a tls: server's certificate, where the url has no pin
    of its key; unless given $ARRAYD_CA,
    then the system's.
    cert: path of a certificate (PEM) to show a tls: server; unless given $ARRAYD_CERT.
    key: path of its key; unless given $ARRAYD_KEY, then the file of the certificate.
    name: str by which the server's operator sees this program (arrayctl); unless given $ARRAYD_NAME, then the name of
    its script or notebook.
    Returns: None. Arrays of an earlier connection stay with it.
    Raises: ValueError for a url of another form; ConnectionError when nobody answers; PermissionError when the server
    does not let one in; arrayd.TLSError when its certificate is refused.
    Source: arrayd
    """
    paths = [None if path is None else os.fspath(path) for path in (ca, cert, key)]
    _core.connect(url, token, *paths, name)


def _program_name():
    """Return what this program is called: its script, module or notebook. None: libarrayd finds a name."""
    if os.environ.get("ARRAYD_NAME"):
        return None
    notebook = os.environ.get("JPY_SESSION_NAME") if "ipykernel" in sys.modules else None
    if notebook:
        return os.path.basename(notebook)
    script = sys.argv[0] if sys.argv else ""
    if script in ("", "-c") or "ipykernel" in sys.modules:
        return "notebook" if "ipykernel" in sys.modules else "python " + script if script else "python"
    folder, file = os.path.split(script)
    return os.path.basename(folder) if file == "__main__.py" else file


_core.set_program_name(_program_name)


def sync():
    """Wait until all operations so far are complete.

    Returns: None.
    Raises: the first error that no array carries, such as that of a failed assignment.
    Source: arrayd
    """
    _core.sync()


def cancel():
    """Cancel what has been sent: computations that the server has not begun are not executed, and long ones that are
    under way end early where the server can do that. Ctrl-C does the same. Does not wait.

    Their results raise arrayd.CancelledError when they are read. Arrays that were complete stay, and data that was
    uploaded is there; an array that a cancelled operation was to change is lost. Other threads of this process use the
    same session.
    Returns: None.
    Raises: NotImplementedError where the server is too old.
    Source: arrayd
    """
    _core.cancel()


def stat():
    """The server's counters.

    Returns: dict of ints by name: operations, bytes and buffers of this session, memory and sessions of the worker.
    Raises: ConnectionError when the server has gone.
    Source: arrayd
    """
    return _core.stat()


def session_info():
    """Return what is known of the connection without asking the server.

    Returns: dict: url, server, backend, device_name, session, devices, memory (bytes), operations (sent), frees (those
    of them that free arrays), round_trips (waited for), lent and copied (arrays that are memory of this program's GPU;
    copies of such memory), messages_bytes (sent), name (the server's among others; "": it has none), principal (who this program is to it: "uid:1000"), peers
    (names of servers that it fetches arrays from, with commas between).
    Raises: ConnectionError when there is no server.
    Source: arrayd
    """
    return _core.session_info()


def show_config(file=None):
    """Print the versions of the package and of NumPy, and what is known of the connection.

    Parameters: file: where to, standard output unless given.
    Returns: None.
    Raises: ConnectionError when there is no server.
    Source: numpy.show_config
    """
    import numpy
    from . import __version__
    lines = {"arrayd": __version__, "numpy": numpy.__version__, "python": sys.version.split()[0], **session_info()}
    for name, value in lines.items():
        print(f"{name:16} {value}", file=file or sys.stdout)
