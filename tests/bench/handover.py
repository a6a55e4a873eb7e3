"""How long it takes to hand a GiB on a GPU to another process: handover.py [--build build/release].

By multiprocessing's pipes: an array of arrayd's, of which the other process makes a PyTorch tensor, to write it or (from
PyTorch 2.9 on) only to read it, and a tensor of PyTorch's by torch.multiprocessing. The time is from sending until the other process has seen an element and said so; an
empty message there and back is printed beside it. The first time an array is handed over, and again.
"""
import argparse
import pathlib
import statistics
import tempfile
import time

import bench

N = 1 << 28


def receive(pipe):
    """Be the other process: make a tensor of whatever comes, and read one element of it."""
    import torch
    torch.zeros(1, device="cuda")
    kept = []
    for _ in iter(lambda: pipe.send(None), 0):
        x = pipe.recv()
        if x is None:
            continue
        if isinstance(x, str):
            kept.clear()
            if x == "end":
                return
            continue
        if isinstance(x, tuple):
            x, = x
            x.flags.writeable = False
        if not isinstance(x, torch.Tensor):
            x = torch.from_dlpack(x)
        kept.append(x)  # the receiver uses what it is handed
        assert float(x[-1]) == 1


def once(pipe, x):
    begin = time.perf_counter()
    pipe.send(x)
    pipe.recv()
    return (time.perf_counter() - begin) * 1e3


def times(pipe, make):
    """First time and again."""
    samples = []
    for _ in range(5):
        x = make()
        samples.append((once(pipe, x), once(pipe, x)))
        once(pipe, "forget")
        del x
    return [statistics.median(column) for column in zip(*samples)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release", type=pathlib.Path)
    build = parser.parse_args().build.resolve()
    bench.use(build)
    import torch
    import torch.multiprocessing as multiprocessing
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        server = bench.start_server(build / "bin" / "arrayd", f"{folder}/arrayd.sock", "cuda")
        try:
            import arrayd
            ours, theirs = context.Pipe()
            other = context.Process(target=receive, args=[theirs])
            other.start()
            ours.recv()
            for _ in range(100):
                empty = once(ours, None)

            def array():
                a = arrayd.ones(N, "float32")
                arrayd.sync()
                return a

            def tensor():
                t = torch.ones(N, device="cuda")
                torch.cuda.synchronize()
                return t

            print(f"torch {torch.__version__}, an empty message there and back: {empty:.3f} ms")
            for name, make in (("arrayd", array), ("arrayd, to read", lambda: (array(),)),
                               ("torch.multiprocessing", tensor)):
                first, again = times(ours, make)
                print(f"1 GiB, {name}: first time {first:.3f} ms, again {again:.3f} ms")
            ours.send("end")
            other.join()
        finally:
            server.terminate()
            server.wait(timeout=20)


if __name__ == "__main__":
    main()
