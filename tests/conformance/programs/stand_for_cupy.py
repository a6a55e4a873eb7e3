"""A plugin of pytest: programs that import cupy get arrayd's."""
import arrayd.cupy

arrayd.cupy.install()
