#!python
"""In the wheel arrayd and arrayctl: runs the program of this name that the package contains, without importing it."""
import importlib.util
import os
import pathlib
import sys

here = pathlib.Path(sys.argv[0])
package = importlib.util.find_spec("arrayd")
if package is None:
    sys.exit(f"{here.name}: the Python package arrayd is not installed for {sys.executable}")
program = pathlib.Path(package.origin).parent / "bin" / here.name
os.execv(program, [program, *sys.argv[1:]])
