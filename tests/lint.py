"""Check what a compiler does not: lint.py [--all]. Without --all only the dependency arrows and Python's syntax."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import architecture
import dialect

TOP = pathlib.Path(__file__).resolve().parent.parent
CODE = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh"}
LONG = 600  # lines; longer files are named, and do not fail

# Project headers that a folder's files may include, by the beginning of the path.
ARROWS = {
    "protocol": ["protocol/"],
    "kernels": ["protocol/", "kernels/"],
    "server": ["protocol/", "server/", "kernels/backend.h", "kernels/compile.h", "kernels/launch.h", "kernels/parts.h", "kernels/redzone.h"],
    "client-c": ["protocol/", "client-c/", "arrayd.h"],
    "client-python": ["protocol/", "client-c/", "client-python/", "arrayd.h"],
}
# Headers from outside that only the named folders may include.
RESERVED = {
    r"uv\.h": ["server/", "tests/"],
    r"ini\.h": ["server/", "tests/"],
    r"microhttpd\.h": ["server/front/"],
    r"jansson\.h": ["server/ctl/"],
    r"nvtx3/.*": ["kernels/cuda/"],
    r"(cuda|cublas|cufft|curand|cusolver|nvrtc|cub/|thrust/).*": ["kernels/", "server/cuda/", "tests/gpu/"],
    r"openssl/.*": ["protocol/tls/"],
    r"Python\.h|numpy/.*": ["client-python/"],
    r"msgpack.*": ["protocol/", "tests/"],
    r"cblas.*|openblas.*": ["kernels/", "tests/unit/kernels_"],
}


def sources():
    for folder, folders, files in os.walk(TOP):
        folders[:] = sorted(f for f in folders if f not in {"build", "__pycache__"} and not f.startswith("."))
        for name in sorted(files):
            if pathlib.Path(name).suffix in CODE | {".def", ".py"}:
                yield pathlib.Path(folder, name).relative_to(TOP)


def own_header(path, name):
    """The project file that an include names, relative to the top, or None for one from outside."""
    for base in (TOP, TOP / path.parent, TOP / "client-c" / "include"):
        found = (base / name).resolve()
        if found.is_file() and TOP in found.parents:
            relative = str(found.relative_to(TOP))
            return "arrayd.h" if relative == "client-c/include/arrayd.h" else relative
    return None


def arrows(path, text):
    """Includes that point the wrong way."""
    allowed = ARROWS.get(path.parts[0])
    for line, name in re.findall(r'^(\s*#\s*include\s*[<"]([^">]+)[">])', text, re.M):
        own = own_header(path, name)
        if own and allowed and not own.startswith(tuple(allowed)):
            yield f"{path}: {path.parts[0]} must not include {own}"
        for pattern, places in RESERVED.items():
            if not own and re.fullmatch(pattern, name) and not str(path).startswith(tuple(places)):
                yield f"{path}: {name} belongs to {', '.join(places)}"


def check_sources():
    problems = []
    for path in sources():
        text = (TOP / path).read_text()
        lines = text.count("\n")
        if path.suffix == ".py":
            try:
                compile(text, str(path), "exec")
            except SyntaxError as error:
                problems.append(f"{path}:{error.lineno}: {error.msg}")
        else:
            problems += arrows(path, text)
        if lines > LONG:
            print(f"warning: {path} has {lines} lines")
        if re.search(r"[ \t]+$", text, re.M) or "\t" in text:
            problems.append(f"{path}: a tab or blanks at the end of a line")
    return problems


def tool(title, command, files, needs=None):
    """Run a checker when it is installed (and of the version whose output is agreed on)."""
    program = shutil.which(command[0]) or shutil.which(command[0], path=TOP / "build" / "venv" / "bin")
    if program and needs:
        version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        program = program if needs in version else None
    if not program or not files:
        print(f"{title}: not here{f' ({needs})' if needs else ''}, passed over")
        return []
    result = subprocess.run([program, *command[1:], *map(str, files)], cwd=TOP, capture_output=True, text=True)
    if result.returncode == 0:
        return []
    print((result.stdout + result.stderr)[-8000:])
    return [f"{title} complains"]


def main():
    problems = check_sources() + list(architecture.check("--all" in sys.argv)) + list(dialect.check())
    if "--all" in sys.argv:
        files = [p for p in sources() if p.suffix in CODE]
        c = [p for p in files if p.suffix == ".c" and p.parts[0] not in ("tests", "client-python")]
        problems += tool("clang-format", ["clang-format", "--dry-run", "-Werror"], files, "version 14.")
        # Types are compared with those of NumPy, and fixtures have the names of arguments.
        problems += tool("ruff", ["ruff", "check", "--quiet", "--output-format=concise", "--select=E7,E9,F",
                                  "--ignore=E721,E741,F811", "--per-file-ignores=__init__.py:F401"],
                         [p for p in sources() if p.suffix == ".py"])
        problems += tool("cppcheck", ["cppcheck", "--quiet", "--std=c11", "--error-exitcode=1", "--inline-suppr",
                                      "--enable=warning,portability", "--suppress=missingIncludeSystem", "-I.",
                                      "-Iclient-c/include", "-D_GNU_SOURCE"], c)
    for problem in problems:
        print(problem)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
