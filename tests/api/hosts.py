"""Two hosts, which are two network namespaces with a cable between them, and servers that fetch arrays from each other."""
import contextlib
import os
import shutil
import signal
import subprocess
import time

from conftest import BUILD, start_server
from patience import PATIENCE

NETWORK = "192.0.2"  # for documentation: nobody has it


def refusal():
    """Why there can be no namespaces here; None: there can."""
    if os.geteuid():
        return "only root may make network namespaces"
    if not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        return "unshare, nsenter or ip is not installed"
    link = "mount -t sysfs net /sys && ip link add name cable type veth peer name end"
    done = subprocess.run(["unshare", "--net", "--mount", "sh", "-c", link], capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else None


class Host:
    """A network namespace, with a /sys of its own, where UCX looks for devices, and what runs in it."""

    def __init__(self):
        self.keeper = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", "mount -t sysfs net /sys; echo; exec cat"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE)
        self.keeper.stdout.readline()  # it is there
        self.running = []

    def command(self, *command):
        return ["nsenter", f"--target={self.keeper.pid}", "--net", "--mount", *map(str, command)]

    def run(self, *command):
        subprocess.run(self.command(*command), check=True, capture_output=True, text=True)

    def begin(self, *command, **options):
        self.running.append(subprocess.Popen(self.command(*command), stdin=subprocess.DEVNULL, **options))

    def end(self):
        for process in (*self.running, self.keeper):
            process.kill()
        for process in (*self.running, self.keeper):
            process.wait()


@contextlib.contextmanager
def make_hosts():
    with contextlib.ExitStack() as stack:
        two = []
        for _ in range(2):
            two.append(Host())
            stack.callback(two[-1].end)
        two[0].run("ip", "link", "add", "name", "cable", "type", "veth", "peer", "name", "cable", "netns", two[1].keeper.pid)
        for number, host in enumerate(two, 1):
            host.run("ip", "address", "add", f"{NETWORK}.{number}/24", "dev", "cable")
            host.run("ip", "link", "set", "cable", "up")
            host.run("ip", "link", "set", "lo", "up")
        yield two


@contextlib.contextmanager
def start_peers(hosts, folder, fetch=True):
    """Two servers, each at one of the hosts: their folders. Each fetches arrays from the other, or not."""
    folders = [folder / "first", folder / "second"]
    with contextlib.ExitStack() as stack:
        processes = []
        for number, (host, own) in enumerate(zip(hosts, folders), 1):
            own.mkdir(exist_ok=True)
            (own / "peers").touch(0o600)
            options = (f"--tls={NETWORK}.{number}:7312", "--self-signed=yes", f"--server-name=host-{number}", f"--peers={own}/peers",
                       "--log-level=debug")
            process, _ = start_server(str(own), *options, prefix=host.command(), XDG_STATE_HOME=str(own))
            processes.append(process)
            stack.callback(process.wait)
            stack.callback(process.kill)
        for number, (here, there) in enumerate((folders, folders[::-1]), 1):
            if fetch:
                introduce(number, here, there, processes[2 - number])
        yield folders


def introduce(number, here, there, process):
    """Let the server of a host be a peer of the other one, whose process reads its files again."""
    url = subprocess.run([BUILD / "bin/arrayctl", "invite", "other", "--peer", f"--socket={here}/arrayd.sock"], check=True,
                         capture_output=True, text=True).stdout
    (there / "peers").write_text(f"host-{number} {url}")
    assert reloads(process, there / "log")


def reloads(process, log):
    """Have a server read its files again. False: it does not."""
    before, end = log.read_text().count("event=reloaded"), time.monotonic() + PATIENCE
    process.send_signal(signal.SIGHUP)
    while log.read_text().count("event=reloaded") == before and time.monotonic() < end:
        time.sleep(0.01)
    return log.read_text().count("event=reloaded") > before
