"""Faults: what went wrong in a tool file, in words that its author can use.

Tracebacks leave out our own frames and show files relative to the namespace's folder, so that nothing of
the machine's layout goes to a caller.
"""

import os
import sys

TRACEBACK_MAX = 16 * 1024
OURS = os.path.dirname(os.path.abspath(__file__))


def fault(file, message, line=None, column=None, traceback=None):
    return {"file": file, "line": line, "column": column, "message": message, "traceback": traceback}


def import_fault(file, error, folder):
    """The fault of a file whose import failed."""
    if isinstance(error, SyntaxError):
        name = os.path.basename(error.filename or file)
        where = "" if name == file else " (in `%s`)" % name
        return fault(file, "syntax error: %s%s" % (error.msg, where), error.lineno, error.offset)
    if isinstance(error, ImportError):
        message = dependency_message(error)
    elif isinstance(error, SystemExit):
        message = "the file called sys.exit(%s) while it was imported" % ("" if error.code is None else error.code)
    else:
        message = summary(error)
    return fault(file, message, line_in(error, os.path.join(folder, file)), None, trace(error, folder))


def summary(error):
    """`Type: text` of an exception; an exception that can't even be printed has only its type."""
    try:
        text = str(error)
    except Exception:
        text = "(its text can't be made)"
    name = type(error).__name__
    return "%s: %s" % (name, start(text, 4000)) if text else name


def add(package):
    """What to do where a library is needed that only stands in."""
    return "add `%s` to `requirements.txt` beside the tool file, for the whole library" % package


def dependency_message(error):
    """What to do about a failed import."""
    name = getattr(error, "name", None)
    if isinstance(error, ModuleNotFoundError) and name:
        package = name.partition(".")[0]
        if hasattr(sys.modules.get(package), "__toolman_shim__"):
            return "only the basics of `%s` are built in, and not the module `%s`; %s" % (package, name, add(package))
        if package != name and package in sys.modules:
            return "the installed `%s` has no module `%s`; check its version in requirements.txt" % (package, name)
        return "the package `%s` is not installed; add it to requirements.txt" % package
    if hasattr(sys.modules.get((name or "").partition(".")[0]), "__toolman_shim__"):
        package = name.partition(".")[0]
        return "%s: only the basics of `%s` are built in; %s" % (summary(error), package, add(package))
    return "%s; check that requirements.txt has the package%s in a version that fits" % (
        summary(error), " `%s`" % name.partition(".")[0] if name else "")


def line_in(error, path):
    """The last line of the file that an exception passed through."""
    line, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == path:
            line = step.tb_lineno
        step = step.tb_next
    return line


def trace(error, folder):
    """The traceback of an exception as text."""
    import traceback

    try:
        seen = traceback.TracebackException.from_exception(error, limit=-100)
        _trim(seen, folder, set())
        text = "".join(seen.format())
    except Exception:  # Hostile exceptions: a __str__ that raises, a chain without end.
        return summary(error)
    if len(text) <= TRACEBACK_MAX:
        return text
    end = text[-(TRACEBACK_MAX - 3000):].split(None, 1)
    return start(text, 2000) + "\n[…]\n" + (end[1] if len(end) > 1 else "")


def start(text, length):
    """The start of a text, in whole words: half a secret would not be known for one any more."""
    if len(text) <= length:
        return text
    words = text[:length].rsplit(None, 1)
    return words[0] if len(words) > 1 else "[%d characters]" % len(text)


def _trim(seen, folder, done):
    if seen is None or id(seen) in done:
        return
    done.add(id(seen))
    kept = [frame for frame in seen.stack if not _ours(frame.filename)]
    del seen.stack[:]
    for frame in kept:
        frame.filename = relative(frame.filename, folder)
        seen.stack.append(frame)
    _trim(seen.__cause__, folder, done)
    _trim(seen.__context__, folder, done)
    for inner in getattr(seen, "exceptions", None) or ():
        _trim(inner, folder, done)


def _ours(filename):
    return filename.startswith((OURS + os.sep, "<frozen importlib")) or filename == os.path.join(
        os.path.dirname(OURS), "worker.py")


def relative(filename, folder):
    """A path as an author knows it: below the namespace, or below where packages are installed."""
    if filename.startswith(folder + os.sep):
        return filename[len(folder) + 1:]
    for mark in ("site-packages" + os.sep, os.sep + "lib" + os.sep + "python"):
        head, found, rest = filename.rpartition(mark)
        if found:
            return rest.partition(os.sep)[2] if mark.endswith("python") else rest
    return filename if filename.startswith("<") else os.path.basename(filename)
