"""The context of a call: how a tool tells its caller what happens meanwhile, asks it, and keeps what it needs again.

Its methods are called like those of fastmcp (`await ctx.info("...")`). The message is on its way when
they return, so they also work in a tool that is not async and never awaits them.
"""

from collections import OrderedDict

from .depth import is_too_deep
from .plain import NotJson, plain, to_bytes

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
# Sessions whose state is kept; those that were not used for longest are forgotten first.
SESSIONS_MAX = 1000
STATES = OrderedDict()


class Done:
    """Something to await that has happened already."""

    __slots__ = ("_value",)

    def __init__(self, value=None):
        self._value = value

    def __await__(self):
        return self._value
        yield


DONE = Done()


class Context:
    """Given to a tool for one call, as the parameter that is annotated `Context`."""

    def __init__(self, request_id=None, tool=None, send=None, progress=False, session=None, ask=None, scope=None):
        self._request_id, self._tool, self._send, self._progress = request_id, tool, send, progress
        self._session, self._ask, self._scope, self._own = session, ask, scope, {}

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
        """The same for all calls of a client while it is connected."""
        return self._session

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

    async def elicit(self, message, response_type=None, schema=None, **_):
        """Asks the person at the client: a type of scalar, a dataclass, a list of choices, or nothing but consent."""
        from .asking import elicit

        return await elicit(self._ask, message, response_type if schema is None else schema, self._scope or {})

    async def sample(self, messages, system_prompt=None, temperature=None, max_tokens=None, model_preferences=None, **more):
        """Lets the model of the client write; the answer has `text`."""
        from .asking import sample

        return await sample(self._ask, messages, system_prompt, temperature, max_tokens, model_preferences, **more)

    async def list_roots(self):
        """The roots of the client."""
        return (await self._ask("roots/list", {})).get("roots") or []

    def set_state(self, key, value, **_):
        """Keeps a value for further calls of this session, as long as the worker runs."""
        self._state()[key] = value
        return DONE

    def get_state(self, key, default=None):
        """What was kept: `await ctx.get_state("key")`."""
        return Done(self._state().get(key, default))

    def delete_state(self, key):
        self._state().pop(key, None)
        return DONE

    def _state(self):
        if self._session is None:
            return self._own
        state = STATES.setdefault(self._session, {})
        STATES.move_to_end(self._session)
        while len(STATES) > SESSIONS_MAX:
            STATES.popitem(last=False)
        return state

    def _tell(self, message):
        if self._send is not None:
            self._send(dict(message, id=self._request_id))

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError("the context of a dock tool has no `%s`; it has log, debug, info, warning, error, report_progress, "
                             "elicit, sample, list_roots, set_state, get_state, delete_state, request_id and session_id; for the rest "
                             "add `fastmcp` to `requirements.txt` beside the tool file" % name)


def _printable(value):
    try:
        made = plain(value)
        return str(value)[:10000] if is_too_deep(to_bytes(made)) else made
    except (NotJson, RecursionError):
        return str(value)[:10000]
