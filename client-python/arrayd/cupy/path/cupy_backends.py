"""In a process started by one in which arrayd stands in for CuPy: it does so here too."""
import arrayd.cupy

arrayd.cupy._stand_in(__name__)
