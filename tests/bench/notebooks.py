"""Measure the memory of many notebooks on one server: notebooks.py [--idle 100] [--busy 10] with ARRAYD_BIN or build/release.

Each notebook is a process with a session of its own. Idle ones have an array of 8 MB and do nothing; busy ones multiply
matrices. They are forks of one process that has not connected yet, so that the server is measured and not how long Python
takes to start. The memory of a notebook's process itself is measured with kernels of Jupyter, a few of them.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("ARRAYD_BIN", TOP / "build/release/bin")) / "arrayd"
MIB = 1 << 20
NUMPY, ARRAYD = "import numpy", "import arrayd; arrayd.ones(1_000_000).sum().item()"


def memory(pid):
    """Bytes of a process in memory, those that it shares with others in part (PSS)."""
    for line in open(f"/proc/{pid}/smaps_rollup"):
        if line.startswith("Pss:"):
            return int(line.split()[1]) << 10
    raise RuntimeError(f"process {pid} has no memory")


def family(pid):
    """The process and its descendants."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in family(int(child)))]


def begin_notebook(busy):
    """Fork a process with a session; when it is connected and has computed, and a function that ends it."""
    ready, tell = os.pipe()
    end, stop = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            import arrayd as ad
            x = ad.ones((1000, 1000))
            (x @ x if busy else x).sum().item()
            os.write(tell, b"x")
            os.close(stop)
            os.set_blocking(end, not busy)
            while True:
                try:
                    os.read(end, 1)
                    break
                except BlockingIOError:
                    (x @ x).sum().item()
        finally:
            os._exit(0)
    os.close(tell)
    os.close(end)
    if os.read(ready, 1) != b"x":
        raise RuntimeError("a notebook has computed nothing")
    os.close(ready)
    return pid, stop


def measure_server(idle, busy, server):
    """Bytes of the server without and with so many notebooks, and the bytes of their arrays."""
    import arrayd as ad
    before = sum(map(memory, family(server)))
    notebooks = []
    try:
        notebooks += [begin_notebook(False) for _ in range(idle)]
        notebooks += [begin_notebook(True) for _ in range(busy)]
        full = sum(map(memory, family(server)))
        used = ad.stat()["used_bytes"]
        if ad.stat()["sessions"] != idle + busy + 1:
            raise RuntimeError("not all notebooks have sessions")
    finally:
        for pid, stop in notebooks:
            os.close(stop)
        for pid, _ in notebooks:
            os.waitpid(pid, 0)
    return before, full, used


def measure_kernel(code):
    """Bytes of a kernel of Jupyter that has executed the code."""
    from jupyter_client.manager import KernelManager
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=300)
        reply = client.execute_interactive(code, timeout=300, output_hook=lambda message: None)
        if reply["content"]["status"] != "ok":
            raise RuntimeError(reply["content"]["evalue"])
        return memory(manager.provisioner.pid)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def start_server(folder):
    """A server of its own for the measurement."""
    process = subprocess.Popen([PROGRAM, f"--socket={folder}/s", "--backend=cpu", "--kernels-cache=none"], stderr=subprocess.PIPE,
                               text=True)
    for line in process.stderr:
        if "event=ready" in line:
            return process
    raise RuntimeError("the server did not start")


def main():
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--idle", type=int, default=100)
    parser.add_argument("--busy", type=int, default=10)
    options = parser.parse_args()
    count = options.idle + options.busy
    with tempfile.TemporaryDirectory(prefix="notebooks-") as folder:
        process = start_server(folder)
        os.environ["ARRAYD_URL"] = f"unix:{folder}/s"
        try:
            import arrayd  # noqa: F401  in the parent, once
            before, full, used = measure_server(options.idle, options.busy, process.pid)
            print(f"server: {before / MIB:.0f} MiB before the first one, {full / MIB:.0f} MiB with {options.idle} idle and "
                  f"{options.busy} busy notebooks, of which {used / MIB:.0f} MiB are arrays: "
                  f"{(full - before - used) / count / 1024:.0f} KiB for each session")
            plain, more = measure_kernel(NUMPY), measure_kernel(ARRAYD)
            print(f"a kernel of Jupyter: {plain / MIB:.0f} MiB with NumPy, {more / MIB:.0f} MiB with arrayd and a session; "
                  f"{count} of them and the server: {(count * more + full) / (1 << 30):.1f} GiB")
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
