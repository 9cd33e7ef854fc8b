"""Calls: running one tool and wording what came of it.

A call is answered once: by its tool, by a cancellation or by its deadline, whichever is first.
"""

import contextvars
import errno
import os
import time

from .context import Context
from .depth import DEPTH_MAX, is_too_deep
from .faults import dependency_message, summary, trace
from .plain import NotJson, to_bytes
from .registry import unwrap
from .results import Broken, call_result
from .tools import InvalidArguments


class Call:
    """One call under way."""

    __slots__ = ("id", "tool", "arguments", "progress", "session", "started", "deadline", "over", "task", "seconds", "running",
                 "gone", "asking")

    def __init__(self, id, tool, arguments, progress, seconds, session=None):
        # How many questions of it wait for an answer.
        self.session, self.asking = session, 0
        self.id, self.tool, self.arguments, self.progress = id, tool, arguments, progress
        self.started, self.over, self.task, self.running = time.monotonic(), False, None, False
        # Whether its tool has really ended, which may be long after the call is over.
        self.gone = False
        self.seconds, self.deadline = seconds, None if seconds is None else self.started + seconds


class Runner:
    """Runs calls on threads or on the loop; `answer(call, frame)` sends what came of one."""

    def __init__(self, folder, pool, answer, tell, result_max):
        self._folder, self._pool, self._answer, self._tell = folder, pool, answer, tell
        self._result_max, self._loop, self._asks = result_max, None, None
        self._abandoned = set()

    def loop(self):
        if self._loop is None:
            from .events import Loop

            self._loop = Loop()
        return self._loop

    def asks(self):
        if self._asks is None:
            from .asking import Asks

            self._asks = Asks(lambda call, message: self._tell(call, dict(message, id=call.id)))
        return self._asks

    def start(self, call):
        if call.tool.asynchronous:
            self.loop().start(self._run_async(call), contextvars.copy_context(), call)
        else:
            context = contextvars.copy_context()
            self._pool.submit(lambda: context.run(self._run_sync, call))

    def cancel(self, call):
        """Stops an async tool. One on a thread runs on, but nobody hears of it."""
        if call.task is not None or call.tool.asynchronous:
            self.loop().cancel(call)
        elif call.running:
            self._abandoned.add(call)
            if not call.running:
                self._abandoned.discard(call)

    def abandoned(self):
        """How many tools still run on threads although their calls are over."""
        return len(self._abandoned)

    def settle(self, seconds):
        """Lets async tools that were cancelled clean up, for a while."""
        if self._loop is not None:
            self._loop.settle(seconds)

    def _run_sync(self, call):
        if call.over:
            call.gone = True
            return
        call.running, goes_on = True, False
        try:
            first, named = self._bind(call)
            value = call.tool.function(*first, **named)
            if hasattr(value, "__await__"):
                from .events import finished

                goes_on = True
                self.loop().start(self._finish(call, finished(value)), contextvars.copy_context(), call)
                return
            self._done(call, value)
        except BaseException as error:
            self._failed(call, error)
        finally:
            call.running = False
            call.gone = not goes_on
            self._abandoned.discard(call)

    async def _run_async(self, call):
        try:
            if call.tool.run is not None:
                value = await call.tool.run(call.arguments)
            else:
                first, named = self._bind(call)
                value = await call.tool.function(*first, **named)
            self._done(call, value)
        except BaseException as error:
            self._failed(call, error)
        finally:
            call.gone = True

    async def _finish(self, call, coroutine):
        try:
            self._done(call, await coroutine)
        except BaseException as error:
            self._failed(call, error)
        finally:
            call.gone = True

    def _bind(self, call):
        context = Context(call.id, call.tool.name, lambda message: self._tell(call, message), call.progress, call.session,
                          lambda method, params: self.asks().ask(call, method, params),
                          getattr(unwrap(call.tool.function), "__globals__", None))
        return call.tool.bind(call.arguments, context)

    def _done(self, call, value):
        try:
            shape = getattr(call.tool, "result", None)
            result = call_result(call.tool, value) if shape is None else shape(value, call.arguments)
            took = round((time.monotonic() - call.started) * 1000, 3)
            frame = to_bytes({"id": call.id, "ok": True, "result": result, "latency_ms": took})
        except RecursionError:
            raise Broken("the tool returned something that is nested too deep, or that contains itself") from None
        if is_too_deep(frame):
            raise Broken("the tool returned something that is nested too deep; the most is %d levels" % DEPTH_MAX)
        size = counted(frame, result, self._result_max)
        if size > self._result_max:
            frame = refusal(call.id, "internal_error", "result too large: %d bytes, at most %d are carried"
                            % (size, self._result_max))
        self._answer(call, frame)

    def _failed(self, call, error):
        try:
            code, message, details = worded(error, self._folder)
        except BaseException as other:  # An exception that can't be looked at still ends its call.
            code, message, details = "internal_error", type(other).__name__, None
        self._answer(call, refusal(call.id, code, message, details))


def counted(frame, result, most):
    """How large a result counts as: as a rule its content and its structure are the same value, which counts once."""
    if len(frame) <= most or "structuredContent" not in result:
        return len(frame)
    structure = len(to_bytes(result["structuredContent"]))
    return max(structure, len(frame) - structure)


def worded(error, folder):
    """The code, message and details of an exception."""
    if isinstance(error, InvalidArguments):
        return "invalid_arguments", str(error), {"errors": error.errors}
    if isinstance(error, Broken):
        return "internal_error", str(error), None
    if type(error).__name__ == "Unanswered" and type(error).__module__ == "toolman_dock.asking":
        return "internal_error", "the tool has asked, and nobody could answer: %s" % error, None
    if isinstance(error, NotJson):
        return "internal_error", "the tool returned something that JSON can't hold: %s" % error, None
    if type(error).__name__ == "CancelledError":
        return "cancelled", "the tool was cancelled", None
    if any(one.__name__ == "ToolError" and one.__module__.startswith(("fastmcp.", "mcp.", "toolman_dock."))
           for one in type(error).__mro__):
        return "internal_error", str(error), None
    if isinstance(error, ImportError):
        return "dependency_error", dependency_message(error), {"traceback": trace(error, folder)}
    if isinstance(error, SystemExit):
        return "internal_error", "the tool called sys.exit(%s)" % ("" if error.code is None else error.code), None
    return "internal_error", summary(error) + limit_met(error), {"traceback": trace(error, folder)}


class Limits:
    """Which settings this worker is held to, besides those that every one is, and whose it is; said once, as it starts."""

    settings, namespace, program = (), "", "toolman"


def limit_met(error):
    """Which setting an exception comes from, if it is one of those that a worker is held to."""
    if isinstance(error, KeyError) and is_of_environment(error):
        name = error.args[0]
        return ("; there is no variable `%s`: if it is a secret, name it under `secrets:` in tooldock.yaml, and set it with "
                "`%s secrets set %s --scope %s`" % (name, Limits.program, name, Limits.namespace))
    if isinstance(error, PermissionError):
        return permission_limit(error)
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return "; a namespace has no more threads than 16 for each of its `processes`, 256 at least: raise `processes` in tooldock.yaml"
    if isinstance(error, OSError) and error.errno == errno.EAGAIN:
        return "; if it is for a process or a thread: a namespace has no more than `processes` in tooldock.yaml allows"
    if isinstance(error, MemoryError):
        return "; a process has no more memory than `memory_mb` allows" + memory_limit()
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return "; files may not become larger than `disk_mb` allows, nor be written while all of them are"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "; if it is in /dev/shm: that holds no more than `memory_mb` allows"
    return ""


def is_of_environment(error):
    """Whether somebody has looked for a variable of the environment that is not there."""
    step, code = error.__traceback__, None
    while step is not None:
        step, code = step.tb_next, step.tb_frame.f_code
    return code is type(os.environ).__getitem__.__code__ and len(error.args) == 1 and isinstance(error.args[0], str)


def permission_limit(error):
    """Which setting stands behind an access that the system denies."""
    if error.filename is not None and "sandbox" in Limits.settings:
        return ("; tools may write to their scratch folder only (`tempfile.gettempdir()`), and read their own files: name the path under `write`"
                " or `read` in tooldock.yaml, or set `sandbox: false`")
    if error.filename is None and "network" in Limits.settings:
        return "; if it is for a connection: set `network: true` in tooldock.yaml"
    return "; if the sandbox denies it: set `sandbox: false` in tooldock.yaml" if "sandbox" in Limits.settings else ""


def memory_limit():
    """What that is for this process, in words, if it is held to something."""
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_DATA)[0]
        return "" if most == resource.RLIM_INFINITY else "; the limit is `memory_mb: %d`" % (most >> 20)
    except Exception:  # There may be no memory for it either.
        return ""


def refusal(id, code, message, details=None):
    return to_bytes({"id": id, "ok": False, "error": {"code": code, "message": message, "details": details}})
