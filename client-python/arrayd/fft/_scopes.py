"""With blocks that say something about the transforms inside: plans and callbacks."""
import threading

_current = threading.local()


class Scope:
    """A setting for this thread's transforms inside a with block. There is one of a kind at a time.

    Subclasses have: _place: the name of the kind. _in_use: what is said where there is one already.
    """

    @classmethod
    def _find_current(cls):
        """The one whose with block this thread is in, or None."""
        return getattr(_current, cls._place, None)

    def __enter__(self):
        if self._find_current() is not None:
            raise RuntimeError(self._in_use)
        setattr(_current, self._place, self)
        return self

    def __exit__(self, *_):
        setattr(_current, self._place, None)
