"""docs/cupy-names.json: the public names of CuPy's modules: cupy_names.py

The source distribution that tests/conformance/rules.toml pins is fetched, and the names are read from its Python files, which
are not run. The names that modules in Cython and running code export (cupy, cupy.cuda, cupy.ndarray) were listed by a
CuPy on a GPU; those names stay in the file, and more are added.
"""
import ast
import io
import json
import pathlib
import re
import sys
import tarfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
CONFORMANCE = HERE.parent / "tests" / "conformance"
LIST = HERE / "cupy-names.json"
# Modules that are no part of the surface: test helpers, types for annotations, and those that only install or build.
_LEFT_OUT = re.compile(r"cupy(\.testing|\.typing|\.cuda|\.exceptions|\.lib|\.fft|\.random|\.linalg)?$"
                       r"|cupy\.cuda\..*|cupyx\.tools.*|cupyx$|cupyx\.scipy$|.*\.delaunay_2d")


def is_public(module):
    return not any(part.startswith("_") for part in module.split("."))


def names_of(text, package):
    """The public names that a module binds: those of __all__, or what it defines, and what it takes from private modules of
    CuPy; a package also what it takes from others."""
    found = set()
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cupy"):
            private = not is_public(node.module)
            found.update((a.asname or a.name) for a in node.names if package or private and not is_public(node.module))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == "__all__" and isinstance(node.value, ast.List):
                    return sorted(ast.literal_eval(node.value))
                found.update(each.id for each in ast.walk(target) if isinstance(each, ast.Name))
    return sorted(name for name in found if not name.startswith("_") and "*" not in name)


def modules_of(archive):
    """The names of each public Python module in a source distribution."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            path = member.name.partition("/")[2]
            if not member.isfile() or not re.match(r"(cupy|cupyx)/.*\.py$", path):
                continue
            module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
            if is_public(module) and not _LEFT_OUT.fullmatch(module):
                yield module, names_of(tar.extractfile(member).read().decode(), path.endswith("__init__.py"))


def main():
    sys.path.insert(0, str(CONFORMANCE))
    import fetch
    source = tomllib.loads((CONFORMANCE / "rules.toml").read_text())["source"]
    listed = json.loads(LIST.read_text())
    for module, names in sorted(modules_of(fetch.download(source["name"], source["version"], source["sha256"]))):
        if names:
            listed[module] = sorted({*listed.get(module, []), *names})
    lines = (f"{json.dumps(module)}: {json.dumps(names)}" for module, names in listed.items())
    LIST.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
