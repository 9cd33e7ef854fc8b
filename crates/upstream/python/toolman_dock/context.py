"""The context of a call: how a tool tells its caller what happens meanwhile.

Its methods are called like those of fastmcp (`await ctx.info("...")`). The message is on its way when
they return, so they also work in a tool that is not async and never awaits them.
"""

from .depth import is_too_deep
from .plain import NotJson, plain, to_bytes

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Done:
    """Something to await that has happened already."""

    __slots__ = ()

    def __await__(self):
        return iter(())


DONE = Done()


class Context:
    """Given to a tool for one call, as the parameter that is annotated `Context`."""

    def __init__(self, request_id=None, tool=None, send=None, progress=False):
        self._request_id, self._tool, self._send, self._progress = request_id, tool, send, progress

    def __class_getitem__(cls, item):
        return cls

    @property
    def request_id(self):
        """The id of the call, as text."""
        return str(self._request_id)

    @property
    def client_id(self):
        return None

    @property
    def session_id(self):
        return None

    @property
    def request_context(self):
        return None

    @property
    def fastmcp(self):
        return None

    def log(self, message=None, level="info", logger_name=None, extra=None, *, data=None, **_):
        """Sends a log message to the caller. `mcp` puts the level first: both orders are understood."""
        if message in LEVELS and level not in LEVELS:
            message, level = level, message
        said = _printable(data if data is not None else message)
        if extra:
            said = {"msg": said, "extra": _printable(extra)}
        self._tell({"op": "log", "level": level if level in LEVELS else "info",
                    "logger": None if logger_name is None else str(logger_name), "data": said})
        return DONE

    def debug(self, message, logger_name=None, extra=None, **_):
        return self.log(message, "debug", logger_name, extra)

    def info(self, message, logger_name=None, extra=None, **_):
        return self.log(message, "info", logger_name, extra)

    def warning(self, message, logger_name=None, extra=None, **_):
        return self.log(message, "warning", logger_name, extra)

    def error(self, message, logger_name=None, extra=None, **_):
        return self.log(message, "error", logger_name, extra)

    def report_progress(self, progress, total=None, message=None):
        """Tells how far the call is; nothing is sent if the caller did not ask for it."""
        if self._progress:
            self._tell({"op": "progress", "progress": plain(progress), "total": plain(total),
                        "message": None if message is None else str(message)})
        return DONE

    def _tell(self, message):
        if self._send is not None:
            self._send(dict(message, id=self._request_id))

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError("the context of a dock tool has no `%s`; it has log, debug, info, warning, error, "
                             "report_progress and request_id" % name)


def _printable(value):
    try:
        made = plain(value)
        return str(value)[:10000] if is_too_deep(to_bytes(made)) else made
    except (NotJson, RecursionError):
        return str(value)[:10000]
