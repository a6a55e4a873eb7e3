"""Modules that can be imported by a second name and stay one object."""
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys


class AliasFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module and what is in it by a second name: AliasFinder("arrayd.cupyx.scipy", "arrayd.scipy").

    The second name gives the same module object, so that a class has one identity whatever name it is imported by.
    """

    def __init__(self, alias, home):
        self.alias, self.home = alias, home

    def find_spec(self, name, path=None, target=None):
        if name != self.alias and not name.startswith(self.alias + "."):
            return None
        home = self.home + name[len(self.alias):]
        if any(part.startswith("_") for part in name[len(self.alias):].split(".")) or not _exists(home):
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=home, is_package=True, loader_state=home)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        sys.modules[module.__name__] = importlib.import_module(module.__spec__.loader_state)


def _exists(name):
    """Whether there is a module of this name, whose parents are imported to find out."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def install_alias(alias, home):
    """Let a module and all modules in it be imported by a second name from now on.

    Parameters: alias: the second name. home: the name of the module.
    Returns: None.
    Source: arrayd
    """
    sys.meta_path.insert(0, AliasFinder(alias, home))
