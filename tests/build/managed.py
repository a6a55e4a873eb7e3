"""A machine for systemd: namespaces in which it is process 1, over a copy (in memory) of this one's files.

Files that are written there stay there, and go with it. It has no network, and control groups below one of its own.
"""
import contextlib
import functools
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import time

from patience import PATIENCE

SYSTEMD = "/usr/lib/systemd/systemd"
NAMESPACES = ("--mount", "--pid", "--ipc", "--uts", "--net", "--cgroup")
# Services that a machine of its own would start, and this one does not need.
MASKED = ("systemd-udevd.service", "systemd-udev-trigger.service", "systemd-modules-load.service", "systemd-sysctl.service",
          "systemd-logind.service", "systemd-networkd.service", "systemd-timesyncd.service", "systemd-binfmt.service",
          "systemd-update-utmp.service", "proc-sys-fs-binfmt_misc.automount", "dev-hugepages.mount", "dev-mqueue.mount",
          "sys-kernel-debug.mount", "sys-kernel-tracing.mount", "e2scrub_all.timer", "fstrim.timer")
# $1: folder for all of it, $2: files that are put over the machine's, $3: its control group.
BOOT = f"""
set -e
echo $$ >"$3/cgroup.procs"
exec unshare {' '.join(NAMESPACES)} --fork --kill-child=KILL sh -ec '
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cp -r "$2/." "$1/root"
cd "$1/root"
mkdir -p etc/systemd/system etc/tmpfiles.d
ln -s /dev/null etc/tmpfiles.d/tmp.conf # which would empty /tmp, where the tests may be
for unit in {' '.join(MASKED)}; do ln -sf /dev/null etc/systemd/system/$unit; done
mount -t proc proc proc
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs dev
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/shm
touch dev/console
mount -t tmpfs tmpfs sys
mkdir -p sys/fs/cgroup
mount -t cgroup2 cgroup2 sys/fs/cgroup
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=test chroot . {SYSTEMD} --system --unit=basic.target
' sh "$1" "$2"
"""


def cgroups():
    """Return where version 2 of control groups is mounted, or None."""
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup2" and "rw" in options.split(","):
            return pathlib.Path(place)
    return None


@functools.cache
def refusal():
    """Why there can be no such machine here, or None."""
    missing = [name for name in (SYSTEMD, "unshare", "nsenter", "chroot") if not shutil.which(name)]
    if missing:
        return f"there is no {missing[0]} here"
    if os.geteuid() != 0:
        return "for root only"
    if not cgroups():
        return "control groups (version 2) are not to be written to"
    mount = "mount --make-rprivate / && mount -t tmpfs tmpfs /mnt && mkdir /mnt/u /mnt/w /mnt/r && " \
            "mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/r"
    done = subprocess.run(["unshare", *NAMESPACES, "--fork", "sh", "-ec", mount], capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else None


class Machine:
    def __init__(self, folder, files):
        """folder: an empty one; files: a folder that is laid over this machine's /."""
        self.group = cgroups() / f"arrayd-test-{secrets.token_hex(8)}"  # process ids may be of a container
        self.group.mkdir()
        self.process = subprocess.Popen(["sh", "-c", BOOT, "sh", folder, files, self.group], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.first = None

    def wait(self, seconds=PATIENCE):
        """Wait until systemd is up. TimeoutError."""
        end = time.monotonic() + seconds
        while True:
            if self.process.poll() is not None:
                raise TimeoutError(self.process.stderr.read())
            with contextlib.suppress(OSError, IndexError):
                path = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
                self.first = int(path.read_text().split()[0])
                if pathlib.Path(f"/proc/{self.first}/comm").read_text() == "systemd\n":
                    state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
                    if state in ("running", "degraded"):
                        return
            if time.monotonic() > end:
                raise TimeoutError("systemd does not come up")
            time.sleep(0.02)

    def command(self, *command):
        """To be run there."""
        return ["nsenter", f"--target={self.first}", *NAMESPACES, "--root", "--wd=/", *map(str, command)]

    def run(self, *command, check=True, **options):
        done = subprocess.run(self.command(*command), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE, **options)
        assert not check or done.returncode == 0, f"{command}\n{done.stdout[-4000:]}"
        return done

    def shows(self, unit, what):
        return self.run("systemctl", "show", "--value", f"--property={what}", unit).stdout.strip()

    def path(self, path):
        """Return the path of that file, seen from here."""
        return f"/proc/{self.first}/root{path}"

    def log(self, unit):
        return self.run("journalctl", "--no-pager", "--output=cat", f"--unit={unit}").stdout

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stderr.close()
        end = time.monotonic() + PATIENCE
        while any(f.read_text().strip() for f in self.group.rglob("cgroup.procs")) and time.monotonic() < end:
            time.sleep(0.01)
        for folder, *_ in os.walk(self.group, topdown=False):
            os.rmdir(folder)
