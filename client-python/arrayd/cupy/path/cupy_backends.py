"""In a process started by one in which arrayd stands in for CuPy: it does so here too."""
import sys

import arrayd.cupy

name = __name__
del sys.modules[name]
arrayd.cupy.install()
__import__(name)  # what is in sys.modules afterwards is what the importer gets
