"""The loader: tool files of one folder into tools, and into faults where that fails.

A broken file loses its own tools only. Files are modules of one invisible package, so that they can import
each other (`import helpers`, `from .helpers import x`) and are still executed once. The folder is searched
after everything else: a file named like a library never stands in that library's way.
"""

import os
import sys
import types
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader

from . import offers, registry
from .depth import is_too_deep
from .faults import fault, import_fault
from .plain import to_bytes
from .shapes import HintError
from .standin import PackageFinder, equip, of_folder
from .tools import build

PACKAGE = "toolman_tools"
FILES_MAX = 1000
TRACEBACKS_MAX = 100
FILE_BYTES_MAX = 1024 * 1024


class Siblings:
    """Finds the files and packages of the folder for the tool files in it, when nobody else knows the name."""

    def __init__(self, folder):
        self._folder = folder

    def find_spec(self, name, path=None, target=None):
        if path is not None or "." in name:
            return None
        return of_folder(PathFinder.find_spec(name, [self._folder], target))


class Loaded:
    """What a folder gave: tools by name, the file of each, and faults."""

    def __init__(self):
        self.tools, self.files, self.faults = {}, {}, []
        # Resources, templates and prompts, by kind and key.
        self.offers = {}

    def add(self, tool, file, line):
        if tool.name in self.files:
            self.faults.append(fault(file, "the tool `%s` is already defined in `%s`, which keeps the name"
                                     % (tool.name, self.files[tool.name]), line))
            return
        if is_too_deep(to_bytes(tool.definition)):
            self.faults.append(fault(file, "the definition of `%s` is nested too deep" % tool.name, line))
            return
        self.tools[tool.name], self.files[tool.name] = tool, file


def tool_files(folder):
    """The names of the tool files, sorted."""
    return sorted(name for name in os.listdir(folder)
                  if name.endswith(".py") and not name.startswith(("_", ".")) and len(name) > 3
                  and os.path.isfile(os.path.join(folder, name)))


def load(folder):
    """Imports every tool file of the folder."""
    loaded = Loaded()
    package = types.ModuleType(PACKAGE)
    package.__path__ = [folder]
    sys.modules[PACKAGE] = package
    sys.meta_path.insert(0, PackageFinder(folder))
    sys.meta_path.append(Siblings(folder))
    try:
        names = tool_files(folder)
    except OSError as error:
        loaded.faults.append(fault(".", "the folder can't be read: %s" % error.strerror))
        return loaded
    if len(names) > FILES_MAX:
        loaded.faults.append(fault(names[FILES_MAX], "a namespace can have %d tool files at most; this and "
                                   "the files after it are left out" % FILES_MAX))
        del names[FILES_MAX:]
    for name in names:
        try:
            module = _import(name, folder)
        except BaseException as error:  # Also SystemExit and KeyboardInterrupt: one file only.
            found = import_fault(name, error, folder)
            if not (isinstance(error, SyntaxError) and error.filename == os.path.join(folder, name)):
                # Its tools are known from its source: this is what a call of one fails with.
                found["code"] = "dependency_error" if isinstance(error, ImportError) else "internal_error"
            loaded.faults.append(found)
            continue
        for mark in _marks(module, os.path.join(folder, name), names):
            _build(loaded, mark, name)
        for offer in _offers(module, os.path.join(folder, name), names):
            _make(loaded, offer, name)
    for extra in loaded.faults[TRACEBACKS_MAX:]:
        extra["traceback"] = None
    return loaded


def _import(file, folder):
    """The module of a tool file, executed now unless another file has imported it already."""
    path, stem = os.path.join(folder, file), file[:-3]
    name = PACKAGE + "." + stem.replace(".", "-")
    for known in (name, stem):
        module = sys.modules.get(known)
        if module is not None and getattr(module, "__file__", None) == path:
            return module
    if os.path.getsize(path) > FILE_BYTES_MAX:
        raise ValueError("the file is over %d bytes" % FILE_BYTES_MAX)
    loader = SourceFileLoader(name, path)
    module = types.ModuleType(name)
    module.__file__, module.__loader__, module.__package__ = path, loader, PACKAGE
    module.__spec__ = ModuleSpec(name, loader, origin=path)
    module.__spec__.has_location = True
    equip(module)
    names = [name] if _taken(stem) else [name, stem]
    for one in names:
        sys.modules[one] = module
    try:
        # Compiled from the source, never from a cache: two quick edits can leave a stale one behind.
        exec(compile(loader.get_data(path), path, "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        for one in names:
            sys.modules.pop(one, None)
        raise
    return module


def _taken(stem):
    """Whether a plain import of this name means something else than the file."""
    if stem in sys.modules or stem in sys.builtin_module_names or not stem.isidentifier():
        return True
    if stem in ("fastmcp", "mcp"):
        return True
    try:
        return PathFinder.find_spec(stem) is not None
    except (ImportError, ValueError, AttributeError):
        return True


def _marks(module, path, names):
    """The tools of a module, in the order in which they were marked."""
    found, seen = [], set()
    for one in registry.MARKS:
        if _owner(one, path, names) == path:
            # A file that was reached under two names is executed twice, but is still one file.
            key = (one.options.get("name") or getattr(one.function, "__name__", None), one.line)
            if key not in seen:
                seen.add(key)
                found.append(one)
    if _has_library():
        from .libraries import marks

        found.extend(marks(module, path, {id(one.function) for one in found}))
        found.sort(key=lambda one: one.line or sys.maxsize)
    return found


def _offers(module, path, names):
    """The resources and prompts of a module."""
    found = [one for one in offers.OFFERS if _owner(one, path, names) == path]
    if _has_library():
        from .libraries import server_offers

        found.extend(server_offers(module, path))
    return found


def _make(loaded, offer, file):
    try:
        made = offers.make(offer)
        if loaded.offers.setdefault((made.kind, made.key), made) is not made:
            raise HintError("the %s `%s` is already defined" % (made.kind, made.key))
    except HintError as error:
        loaded.faults.append(fault(file, str(error), offer.line))
    except Exception as error:
        found = import_fault(file, error, os.path.dirname(os.path.abspath(offer.file or file)))
        loaded.faults.append(dict(found, line=offer.line, message="a resource or prompt can't be read: " + found["message"]))


def _has_library():
    """Whether a real fastmcp or mcp has been imported."""
    return any(not hasattr(sys.modules.get(name), "__toolman_shim__") for name in ("fastmcp", "mcp") if name in sys.modules)


def _owner(mark, path, names):
    """The file that a mark belongs to: the one that made it, or, where that is a helper, the function's own."""
    folder = os.path.dirname(path)
    if mark.file is not None and os.path.dirname(mark.file) == folder and os.path.basename(mark.file) in names:
        return mark.file
    code = getattr(registry.unwrap(mark.function), "__code__", None)
    return code.co_filename if code is not None else mark.file


def _build(loaded, mark, file):
    if mark.options.get("enabled") is False:
        return
    if "fault" in mark.options:
        loaded.faults.append(fault(file, mark.options["fault"], mark.line))
        return
    try:
        loaded.add(mark.function if mark.options.get("built") else build(mark.function, mark.options), file, mark.line)
    except HintError as error:
        loaded.faults.append(fault(file, str(error), mark.line))
    except RecursionError:
        loaded.faults.append(fault(file, "the hints or defaults of the tool are nested too deep, or have no end; use a "
                                   "dataclass or a TypedDict for what contains itself", mark.line))
    except Exception as error:
        # Descriptors, metaclasses and the like of a tool file can raise anything when looked at.
        found = import_fault(file, error, os.path.dirname(os.path.abspath(mark.file or file)))
        loaded.faults.append(dict(found, line=mark.line, message="the tool can't be read: " + found["message"]))
