"""Errors and options of the compiler of users' kernels, under CuPy's name (cupy.cuda.compiler)."""
import re

from .. import _core

__all__ = ["CompileException", "is_valid_kernel_name"]
_KERNEL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_valid_kernel_name(name):
    """Whether a kernel can have a name: that of a function of C, in ASCII.

    Parameters: name: str.
    Returns: bool.
    Raises: TypeError for a name that is no str.
    Source: cupy.cuda.compiler.is_valid_kernel_name
    """
    return _KERNEL_NAME.fullmatch(name) is not None


class CompileException(_core.CompileError):
    """A source does not compile. Also an arrayd.CompileError.

    Parameters: msg: what the compiler says, with the lines of the source. source: the source as it was sent. name: what
    was compiled. options: of the compiler. backend: the compiler's name.
    Source: cupy.cuda.compiler.CompileException
    """

    def __init__(self, msg, source, name, options, backend="nvrtc"):
        super().__init__(msg)
        self._msg, self.source, self.name, self.options, self.backend = msg, source, name, options, backend

    def __reduce__(self):
        return type(self), (self._msg, self.source, self.name, self.options, self.backend)

    def __str__(self):
        return self._msg

    def get_message(self):
        """str: what the compiler says."""
        return self._msg

    def dump(self, f):
        """Write the source, with numbers of lines, and what the compiler says to a file.

        Parameters: f: file that is open for text.
        Returns: None.
        """
        lines = self.source.split("\n")
        width = len(str(len(lines)))
        f.write(f"{self.backend} could not compile {self.name}, options {' '.join(self.options) or 'none'}:\n")
        f.writelines(f"{number:{width}} {line}\n" for number, line in enumerate(lines, 1))
        f.write(f"\n{self._msg}\n")
        f.flush()
