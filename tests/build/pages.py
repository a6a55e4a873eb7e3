"""Runs the code blocks of a page: pages.py PAGE INSTALLED, in an empty folder. INSTALLED: what `make install` made.

The rules, which CONTRIBUTING.md has for authors:

- A `python` block runs in the page's one namespace. `# gives VALUE` behind a statement says what it is or prints,
  `# raises ERROR: message` that it fails; `...` stands for anything.
- A `sh` block runs in bash; what it exports and the folder it goes to hold for what follows. Servers that it starts in
  the background are waited for.
- A `c` block is a program, compiled and run.
- `text` below one of these is what it prints.
- A block of any language that begins with a comment that is a file's name is that file; a `sh` block uses it.
- Below a line "*Not tested here: reason.*", or that in an HTML comment, a block of Python or shell is only parsed.

A page that starts no server has one of the CPU backend at the well-known place.
"""
import ast
import contextlib
import dataclasses
import io
import linecache
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import traceback
import types

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from patience import PATIENCE  # noqa: E402

FENCE = re.compile(r"^( *)```(.*)$")
NOT_TESTED = re.compile(r"^(?:\*|<!-- )Not tested here: (.+)\.(?:\*| -->)$")
FILE = re.compile(r"^(?:#|//|/\*) ((?=.*[./])(?:/?[\w.-]+/)*[\w-]+\.?[\w.]*)(?: \*/)?$")
SAYS = re.compile(r"  # (gives|raises) (.*)$")
SERVER = re.compile(r"^\s*(?:\w+=\S* )*(?:\S*/)?arrayd\b[^|;]*&\s*(?:#.*)?$", re.M)
FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Werror"]


class Wrong(Exception):
    """A page says what is not so."""


@dataclasses.dataclass
class Block:
    language: str
    line: int  # of its first line of code, from 1
    text: str
    reason: str = None  # why it is not run

    @property
    def file(self):
        found = FILE.match(self.text.split("\n", 1)[0])
        return found and found[1]


def blocks(text):
    """The code blocks of a page, in order."""
    lines, found, inside, before = text.splitlines(), [], None, ""
    for number, line in enumerate(lines, 1):
        fence = FENCE.match(line)
        if fence and inside is None:
            reason = NOT_TESTED.match(before)
            inside = Block(fence[2].strip(), number + 1, "", reason and reason[1])
        elif fence:
            inside.text = textwrap.dedent(inside.text)
            found.append(inside)
            inside = None
        elif inside:
            inside.text += line + "\n"
        before = line.strip() or before
    if inside:
        raise Wrong(f"line {inside.line}: a block without an end")
    return found


def like(expected, got):
    """Tell whether a text is as the page has it, but for blanks; `...` stands for anything."""
    parts = [re.escape("".join(part.split())) for part in expected.split("...")]
    return re.fullmatch(".*?".join(parts), "".join(got.split()), re.S)


def free_port():
    """Find a port that nobody has, below those that the kernel gives to others meanwhile."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


class Page:
    """A page's namespace, folder, shell and servers."""

    def __init__(self, path, installed):
        self.path, self.installed, self.groups = path, installed, []
        self.here = pathlib.Path.cwd()
        self.module = sys.modules["__main__"] = types.ModuleType("__main__")
        self.blocks = blocks(path.read_text())
        self.files = set()
        # Paths and addresses that pages name and a test cannot have.
        self.replaced = {"/tmp/": f"{self.here}/tmp/",  # first: it is in the others
                         "/etc/arrayd": f"{self.here}/etc/arrayd", "/run/arrayd": f"{self.here}/run/arrayd",
                         "build/release/bin": f"{installed}/usr/bin", "build/venv/bin/python": sys.executable,
                         "build/release/python": os.environ["PYTHONPATH"],
                         "gpu.example.org": "localhost", ":7311": f":{free_port()}", ":7312": f":{free_port()}"}
        self.ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ready.bind(f"{self.here}/ready")
        self.ready.settimeout(PATIENCE)
        self._environment()

    def _environment(self):
        usr = self.installed / "usr"
        for folder in ("etc/arrayd", "run/arrayd", "home", "runtime", "tmp"):
            (self.here / folder).mkdir(parents=True, mode=0o700)
        (self.here / "home/.local").symlink_to(usr)
        for name in [n for n in os.environ if n.startswith(("ARRAYD_", "XDG_")) and n != "ARRAYD_KERNELS_CACHE"]:
            del os.environ[name]
        os.environ.update(
            HOME=f"{self.here}/home", XDG_RUNTIME_DIR=f"{self.here}/runtime", ARRAYD_BACKEND="cpu",
            ARRAYD_SOCKET=f"{self.here}/runtime/arrayd.sock",  # for root, too
            NOTIFY_SOCKET=self.ready.getsockname(),
            PATH=f"{usr}/bin:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}", LD_LIBRARY_PATH=f"{usr}/lib",
            PKG_CONFIG_PATH=f"{usr}/lib/pkgconfig", PKG_CONFIG_SYSROOT_DIR=str(self.installed))

    def real(self, text):
        for name, instead in self.replaced.items():
            text = text.replace(name, instead)
        return text

    # ---- kinds of blocks ----

    def run(self):
        own = any(b.language == "sh" and not b.reason and SERVER.search(b.text) for b in self.blocks)
        if not own and any("arrayd" in b.text for b in self.blocks):
            self.sh(Block("sh", 0, "arrayd --log-level=warn &\n"))
        printed = None  # by the block before
        for block in self.blocks:
            try:
                printed = self.one(block, printed)
            except Exception as error:
                error.add_note(f"{self.path.name}:{block.line}: in this block:\n{block.text}")
                raise
        unused = self.files - self.used()
        if unused:
            raise Wrong(f"no block uses {', '.join(sorted(unused))}")

    def used(self):
        text = "".join(b.text for b in self.blocks if not b.file and not b.reason)
        return {name for name in self.files if name in text or pathlib.Path(name).name in text}

    def one(self, block, printed):
        """Run a block; what it printed."""
        if block.language == "text" and not block.file:
            if printed is None and not block.reason:
                raise Wrong("this follows no block that prints it, and does not say why it is not tested")
            if printed is not None and not block.reason and not like(self.real(block.text), printed):
                raise Wrong(f"printed is:\n{printed}")
            return None
        if block.reason:
            self.parse(block)
            return None
        if block.file:
            path = self.here / self.real(block.file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.real(block.text))
            path.chmod(0o600)
            self.files.add(block.file)
            return None
        if block.language not in ("python", "sh", "c"):
            raise Wrong(f"nobody knows how to run a block of {block.language!r}: it is no file, and not marked")
        return getattr(self, block.language)(block)

    def parse(self, block):
        if block.language == "python":
            ast.parse(block.text)
        elif block.language == "sh":
            subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)

    def python(self, block):
        source = self.real(block.text)
        lines, tree, all_printed = source.splitlines(), ast.parse(source), ""
        name = f"<{self.path.name}, block at {block.line}>"
        linecache.cache[name] = len(source), None, ["\n"] * (block.line - 1) + source.splitlines(True), name  # for jit
        claims = {n for n, line in enumerate(lines, 1) if SAYS.search(line)}
        for statement in tree.body:
            says = SAYS.search(lines[statement.end_lineno - 1])
            claims.discard(statement.end_lineno)
            number = statement.lineno
            ast.increment_lineno(statement, block.line - 1)
            try:
                all_printed += self.statement(statement, name, *(says.groups() if says else (None, None)))
            except Exception as error:
                error.add_note(f"{self.path.name}:{block.line + number - 1}: {lines[number - 1]}")
                raise
        if claims:
            raise Wrong(f"lines {claims}: only whole statements give or raise")
        return all_printed

    def statement(self, statement, name, claim, expected):
        """Execute a statement of the source of that name, of which the page claims something; what it printed."""
        out, value, raised = io.StringIO(), None, None
        with contextlib.redirect_stdout(out):
            try:
                if isinstance(statement, ast.Expr):
                    value = eval(compile(ast.Expression(statement.value), name, "eval"), vars(self.module))
                else:
                    exec(compile(ast.Module([statement], []), name, "exec"), vars(self.module))
                shown = out.getvalue() if value is None else repr(value)
            except (Exception, KeyboardInterrupt) as error:
                if claim != "raises":
                    raise
                raised = f"{type(error).__name__}: {error}"
        if claim == "raises" and raised is None:
            raise Wrong(f"raises nothing, gives {shown}")
        if claim and not like(expected, raised or shown):
            raise Wrong(f"{claim} {raised or shown}")
        return out.getvalue()

    def sh(self, block):
        state = self.here / "state"
        self.forget_ready()
        script = self.real(block.text) + f"\nenv -0 >{state}\npwd >>{state}\n"
        with tempfile.TemporaryFile("w+") as out:  # one for each block, as servers go on writing
            process = subprocess.Popen(["bash", "-euc", script], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            self.groups.append(process.pid)
            with open(self.here / "groups", "a") as groups:  # for who has to end what this process leaves
                print(process.pid, file=groups)
            try:
                status = process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                status = "time-out"
            if status == 0:
                self.wait_ready(out, len(SERVER.findall(block.text)))
            out.seek(0)
            printed = out.read()
            if status != 0:
                raise Wrong(f"status {status}; printed is:\n{printed}")
        *variables, folder = state.read_text().split("\0")
        os.environ.clear()
        os.environ.update(v.split("=", 1) for v in variables)
        os.chdir(folder.strip())
        return printed

    def forget_ready(self):
        """Drop what other programs of earlier blocks have said: gunicorn says READY=1 as well."""
        self.ready.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.ready.recv(1000)
        self.ready.settimeout(PATIENCE)

    def wait_ready(self, out, servers):
        try:
            for _ in range(servers):
                while b"READY=1" not in self.ready.recv(1000):
                    pass
        except TimeoutError:
            out.seek(0)
            raise Wrong(f"the server did not start:\n{out.read()}") from None

    def c(self, block):
        if "int main(" not in block.text:
            raise Wrong("a block of C is a whole program")
        pathlib.Path("block.c").write_text(self.real(block.text))
        flags = subprocess.check_output(["pkg-config", "--cflags", "--libs", "arrayd"], text=True).split()
        for command in (["cc", *FLAGS, "block.c", "-o", "block", *flags], ["./block"]):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=PATIENCE)
            if done.returncode != 0:
                raise Wrong(f"{command[0]}: status {done.returncode}\n{done.stdout}")
        return done.stdout

    def end(self):
        for group in self.groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)


def main():
    page = Page(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())
    try:
        page.run()
    except Exception:
        traceback.print_exc()
        sys.exit(1)
    finally:
        page.end()


if __name__ == "__main__":
    main()
