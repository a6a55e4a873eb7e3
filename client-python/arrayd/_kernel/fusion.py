"""fuse: the decorator; what it asks for the server does by itself."""
import functools


class _Fused:
    """A function that fuse has decorated; it is called as it was written."""

    def __init__(self, function, kernel_name):
        functools.update_wrapper(self, function)
        self.func, self.kernel_name = function, kernel_name

    def __repr__(self):
        return f"<fused function {self.kernel_name}>"

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args, **kwargs):
        return self.func(*args, **kwargs)

    def clear_cache(self):
        """Nothing: the server keeps fused kernels for all its clients.

        Returns: None.
        """


def fuse(*args, **kwargs):
    """A decorator for functions of arrays and numbers. The server makes one kernel of consecutive elementwise
    operations whether a function is decorated or not, so the function runs as it is; programs that have the decorator
    need no change.

    Parameters: args: the function, where the decorator is used without parentheses. kwargs: kernel_name: a name for the
    function, its own unless given.
    Returns: the function, decorated; or the decorator.
    Raises: TypeError for other arguments.
    Differs: nothing is analysed or compiled at the call, and any function may be decorated.
    Source: cupy.fuse
    """
    if len(args) == 1 and not kwargs and callable(args[0]):
        return _Fused(args[0], getattr(args[0], "__name__", "fused"))
    name = kwargs.pop("kernel_name", None)
    if args or kwargs:
        raise TypeError(f"fuse takes a function, or kernel_name by name, not {[*args, *kwargs]}")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"kernel_name must be a str, not {name!r}")
    return lambda function: _Fused(function, name or getattr(function, "__name__", "fused"))
