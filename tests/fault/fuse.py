"""A FUSE file system of one file (linux/fuse.h): as a program its daemon, which answers close() of programs called arrayd*
never. It ends with its standard input, and then all who wait get an error."""
import contextlib
import ctypes
import errno
import os
import pathlib
import stat
import struct
import subprocess
import sys
import tempfile
import threading

LOOKUP, FORGET, GETATTR, OPEN, RELEASE, FLUSH, INIT, INTERRUPT = 1, 2, 3, 14, 18, 25, 26, 36
ROOT, FILE = 1, 2  # numbers of the folder and the file
DETACH = 2         # MNT_DETACH
LIBC = ctypes.CDLL(None, use_errno=True)


def attributes(node):
    mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o666
    return struct.pack("<6Q10I", node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(device, unique, data=b"", error=0):
    with contextlib.suppress(FileNotFoundError):  # nobody waits for it any more
        os.write(device, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)


def is_server(thread):
    return pathlib.Path(f"/proc/{thread}/comm").read_text().startswith("arrayd")


def handle(device, request):
    _, opcode, unique, node, _, _, thread = struct.unpack_from("<IIQQIII", request)
    if opcode == INIT:
        answer(device, unique, struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 1 << 16, 1, 0, 0, 0))
    elif opcode == LOOKUP:
        answer(device, unique, struct.pack("<4Q2I", FILE, 0, 0, 0, 0, 0) + attributes(FILE))
    elif opcode == GETATTR:
        answer(device, unique, struct.pack("<QII", 0, 0, 0) + attributes(node))
    elif opcode == OPEN:
        answer(device, unique, struct.pack("<QII", 1, 0, 0))
    elif opcode == FLUSH and is_server(thread):
        print("closing", flush=True)
    elif opcode in (FLUSH, RELEASE):
        answer(device, unique)
    elif opcode not in (FORGET, INTERRUPT):
        answer(device, unique, error=errno.ENOSYS)


def serve(device):
    """Answer until nobody uses the file system any more (ENODEV)."""
    with contextlib.suppress(OSError):
        while True:
            handle(device, os.read(device, 1 << 17))
    os._exit(0)


def run_daemon(folder):
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    if LIBC.mount(b"slow", folder.encode(), b"fuse", 0, options.encode()):
        sys.exit(os.strerror(ctypes.get_errno()))
    print("mounted", flush=True)
    threading.Thread(target=serve, args=[device], daemon=True).start()
    sys.stdin.read()
    LIBC.umount2(folder.encode(), DETACH)  # the test's process was killed
    os._exit(0)


@contextlib.contextmanager
def mounted():
    """The daemon (subprocess.Popen) and the path of the file. OSError where FUSE cannot be used."""
    if not os.access("/dev/fuse", os.W_OK):
        raise OSError(errno.EACCES, "/dev/fuse may not be opened")
    folder = tempfile.mkdtemp(prefix="arrayd-fuse-")
    daemon = subprocess.Popen([sys.executable, __file__, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    try:
        if not daemon.stdout.readline():
            raise OSError(errno.EPERM, daemon.stderr.read().strip())
        yield daemon, os.path.join(folder, "file")
    finally:
        daemon.kill()
        daemon.wait()
        LIBC.umount2(folder.encode(), DETACH)
        os.rmdir(folder)


if __name__ == "__main__":
    run_daemon(sys.argv[1])
