"""Programs that fork while memory of theirs is lent."""
from raw import Client, wait_until
from test_lending import lender, nothing_left, run, server

__all__ = ["lender", "run", "server"]


def test_forks_while_memory_is_lent(server, run):
    """A second thread forks. The children close what is not theirs, and nothing else."""
    run(server, """
import threading
tensor, over = Tensor(np.arange(10.0)), threading.Event()
def lend():
    while not over.is_set():
        ad.asarray(tensor)
thread = threading.Thread(target=lend)
thread.start()
try:
    for _ in range(150):
        pid, status = os.fork(), 1
        if not pid:
            try:
                os.fstat(0)
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
finally:
    over.set()
    thread.join()
""")


def test_a_child_does_not_keep_it(server, lender):
    """The parent is killed, and its child has its descriptors: none of them is a lease."""
    parent = lender(server, """
t = Tensor(np.arange(50_000.0))
a = ad.asarray(t)
b = ad.arange(5)
pid = os.fork()
if not pid:
    print(b.sum(), flush=True)
    input()
    os._exit(0)
os.waitpid(pid, 0)
""")
    assert parent.stdout.readline() == "10\n"
    watcher = Client(server.path)
    assert watcher.stat()["imports"] == 1
    parent.kill()
    wait_until(lambda: not watcher.stat()["imports"], "the lease is over")
    parent.communicate("\n")
    watcher.close()
    nothing_left(server)
