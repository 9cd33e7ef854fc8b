"""The stand-in: `Field` of pydantic, for the files of the folder, where pydantic is not installed.

Others must not see it: a library that looks whether pydantic is there would take it for the real one. So it is no
module of the interpreter; files of the folder have an `__import__` of their own.
"""

import builtins
import sys
from importlib.machinery import PathFinder, SourceFileLoader
from types import ModuleType

from .faults import add

NAME = "pydantic"


class Described:
    """What `Field(...)` makes: keywords about a parameter."""

    def __init__(self, keywords):
        self.__toolman_field__ = keywords


def Field(default=Ellipsis, **keywords):
    """Describes a parameter, in `Annotated[...]` or as its default, with pydantic's keywords."""
    if default is not Ellipsis:
        keywords["default"] = default
    return Described(keywords)


class StandIn(ModuleType):
    """A module of which one name is here."""

    def __getattr__(self, name):
        raise AttributeError(_lacks(name) if not name.startswith("__") else name)


STAND_IN = StandIn(NAME)
STAND_IN.Field = Field


def _lacks(name):
    return "of %s only `Field` is here, and not `%s`; %s" % (NAME, name, add(NAME))


def import_for_the_folder(name, globals=None, locals=None, fromlist=(), level=0):
    """`__import__` as the files of the folder have it."""
    if level or name.partition(".")[0] != NAME or _is_installed():
        return builtins.__import__(name, globals, locals, fromlist, level)
    if name != NAME:
        raise ModuleNotFoundError(_lacks(name), name=NAME)
    for one in fromlist or ():
        if one not in ("Field", "*"):
            raise ImportError(_lacks(one), name=NAME)
    return STAND_IN


def _is_installed():
    if NAME in sys.modules:
        return True
    return any(finder.find_spec(NAME, None) is not None for finder in sys.meta_path if hasattr(finder, "find_spec"))


def equip(module):
    """Gives the module of a file of the folder an `__import__` of its own."""
    module.__dict__["__builtins__"] = dict(vars(builtins), __import__=import_for_the_folder)


class FolderLoader(SourceFileLoader):
    """Loads a file of the folder that others import."""

    def exec_module(self, module):
        equip(module)
        super().exec_module(module)


def of_folder(spec):
    """The same spec, with a loader that equips its module."""
    if spec is not None and type(spec.loader) is SourceFileLoader:
        spec.loader = FolderLoader(spec.loader.name, spec.loader.path)
    return spec


class PackageFinder:
    """Finds the files of packages that lie in the folder."""

    def __init__(self, folder):
        self._folder = folder

    def find_spec(self, name, path=None, target=None):
        if path is None or not any(str(one).startswith(self._folder) for one in path):
            return None
        return of_folder(PathFinder.find_spec(name, path, target))
