"""The desk: reads requests on the main thread, keeps the table of calls and watches their deadlines."""

import heapq
import threading
import time

from .calls import Call, Runner, refusal
from .offers import PROMPT, RESOURCE, TEMPLATE, URI
from .pool import Pool
from .stdio import EXIT_GARBAGE, leave, say
from .wire import Closed, Garbage, Oversized

CALLS_MAX = 1024
GRACE_SECONDS = 5.0
SETTLE_SECONDS = 0.5
# How long a tool may go on after its call is over and its time is up.
STUCK_SECONDS = 2.0
# How often it is looked whether a call that has asked somebody goes on.
ASKING_LOOK_SECONDS = 0.5
# What is listed by each operation.
LISTS = {"resources.list": (RESOURCE, "resources"), "templates.list": (TEMPLATE, "resourceTemplates"),
         "prompts.list": (PROMPT, "prompts")}


class Desk:
    def __init__(self, wire, namespace, folder, loaded, call_timeout=None, result_max=8 * 1024 * 1024, after=None):
        self._wire, self._namespace, self._loaded = wire, namespace, loaded
        self._timeout, self._after = call_timeout, after
        self._lock, self._calls, self._deadlines, self._count = threading.Lock(), {}, [], 0
        self._closing = None
        # Calls that are over, by when their tools must have ended.
        self._leaving = []
        self._runner = Runner(folder, Pool(), self._answer, self._tell, result_max)

    def serve(self):
        """Answers until the end; gives the exit code."""
        if any(tool.asynchronous for tool in self._loaded.tools.values()):
            self._runner.loop()
        try:
            while True:
                for frame in self._wire.frames(self._wait()):
                    self._handle(frame)
                self._expire()
                if self._closing is not None and (not self._calls or time.monotonic() >= self._closing[1]):
                    return self._close()
        except Closed as error:
            self._abandon()
            return self._code(error)
        except Garbage as error:
            return self._code(error)

    def _code(self, error):
        """The exit code of an end, with words where it is nobody's wish."""
        if isinstance(error, Garbage):
            say("worker of `%s`: %s\n" % (self._namespace, error))
            return EXIT_GARBAGE
        return 0

    def _wait(self):
        until = [heap[0][0] for heap in (self._deadlines, self._leaving) if heap]
        if self._closing is not None:
            # Answers come from other threads, so the end of the last call is looked for.
            until += [self._closing[1], time.monotonic() + 0.01]
        return None if not until else max(0.0, min(until) - time.monotonic())

    def _handle(self, frame):
        if isinstance(frame, Oversized):
            id = frame.id()
            if id is None:
                raise Garbage("a frame is too long, and does not begin with its id")
            self._wire.send_bytes(refusal(id, "invalid_arguments", "the request is too large"))
            return
        op, id = frame.get("op"), frame.get("id")
        if op == "cancel":
            self._cancel(id)
            return
        if op == "answer":
            self._runner.asks().settle(frame)
            return
        if not isinstance(id, (str, int)) or isinstance(id, bool) or not isinstance(op, str):
            raise Garbage("a frame has no `id` or no `op`")
        handler = self._handlers.get(op)
        if handler is None:
            self._wire.send_bytes(refusal(id, "internal_error", "the op `%s` is not known" % op[:80]))
        else:
            handler(self, id, frame)

    def _ok(self, id, result):
        self._wire.send({"id": id, "ok": True, "result": result, "latency_ms": 0})

    def _list(self, id, frame):
        self._ok(id, {"tools": [tool.definition for tool in self._loaded.tools.values()]})

    def _list_offers(self, id, frame):
        kind, member = LISTS[frame["op"]]
        self._ok(id, {member: [one.definition for one in self._loaded.offers.values() if one.kind == kind]})

    def _read(self, id, frame):
        uri, offers = frame.get("uri"), self._loaded.offers
        if isinstance(uri, str):
            known = offers.get((RESOURCE, uri))
            if known is not None:
                self._begin(id, frame, known, {URI: uri})
                return
            for one in offers.values():
                found = one.match(uri) if one.kind == TEMPLATE else None
                if found is not None:
                    self._begin(id, frame, one, dict(found, **{URI: uri}))
                    return
        self._wire.send_bytes(refusal(id, "tool_not_found", "no resource has this URI in `%s`" % self._namespace))

    def _prompt(self, id, frame):
        name, arguments = frame.get("prompt"), frame.get("arguments")
        known = self._loaded.offers.get((PROMPT, name)) if isinstance(name, str) else None
        if known is None:
            self._wire.send_bytes(refusal(id, "tool_not_found", "no prompt has this name in `%s`" % self._namespace))
        else:
            self._begin(id, frame, known, arguments if isinstance(arguments, dict) else {})

    def _schema(self, id, frame):
        tool = self._find(id, frame)
        if tool is not None:
            self._ok(id, tool.definition)

    def _ping(self, id, frame):
        # Tools on threads that nobody waits for any longer: the gateway may want to replace this worker.
        self._ok(id, {"calls": len(self._calls), "abandoned": self._runner.abandoned()})

    def _shutdown(self, id, frame):
        grace = frame.get("grace", GRACE_SECONDS)
        grace = grace if isinstance(grace, (int, float)) and 0 <= grace <= 600 else GRACE_SECONDS
        self._closing = (id, time.monotonic() + grace)

    def _find(self, id, frame):
        name = frame.get("tool")
        tool = self._loaded.tools.get(name) if isinstance(name, str) else None
        if tool is None:
            shown = name if isinstance(name, str) else "?"
            self._wire.send_bytes(refusal(id, "tool_not_found", "no tool is named `%s` in `%s`"
                                          % (shown[:128], self._namespace)))
        return tool

    def _call(self, id, frame):
        tool = self._find(id, frame)
        if tool is None:
            return
        arguments = frame.get("arguments")
        arguments = {} if arguments is None else arguments
        if not isinstance(arguments, dict):
            errors = [{"path": "", "message": "expected an object"}]
            self._wire.send_bytes(refusal(id, "invalid_arguments", "the arguments must be an object", {"errors": errors}))
            return
        self._begin(id, frame, tool, arguments)

    def _begin(self, id, frame, tool, arguments):
        """Starts a call of a tool, or of what is called like one."""
        if self._closing is not None:
            self._wire.send_bytes(refusal(id, "cancelled", "the worker is shutting down"))
            return
        seconds = frame.get("timeout", self._timeout)
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds <= 0:
            seconds = None
        session = frame.get("session")
        call = Call(id, tool, arguments, frame.get("progress") is True, seconds, session if isinstance(session, str) else None)
        with self._lock:
            refused = ("the id is in use" if id in self._calls else
                       "too many calls are under way" if len(self._calls) >= CALLS_MAX else None)
            if refused is None:
                self._calls[id] = call
        if refused is not None:
            self._wire.send_bytes(refusal(id, "internal_error", refused))
            return
        if call.deadline is not None:
            self._count += 1
            heapq.heappush(self._deadlines, (call.deadline, self._count, call))
        self._runner.start(call)

    _handlers = {"tools.list": _list, "tools.get_schema": _schema, "tools.call": _call, "ping": _ping,
                 "shutdown": _shutdown, "resources.list": _list_offers, "templates.list": _list_offers,
                 "prompts.list": _list_offers, "resources.read": _read, "prompts.get": _prompt}

    def _claim(self, call):
        """Whether the caller of this is the one to answer the call."""
        with self._lock:
            if call.over:
                return False
            call.over = True
            return self._calls.pop(call.id, None) is call

    def _answer(self, call, frame):
        if self._after is not None:
            self._after()
        if self._claim(call):
            try:
                self._wire.send_bytes(frame)
            except (Closed, Garbage) as error:
                # The main thread may wait on a descriptor that no longer wakes it, or may not exist in this process.
                leave(self._code(error))

    def _tell(self, call, message):
        # A question is taken back when its call is over, as a rule.
        if not call.over or message["op"] == "unask":
            self._wire.send(message)

    def _cancel(self, id):
        call = self._calls.get(id) if isinstance(id, (str, int)) else None
        if call is not None:
            self._end(call, "cancelled", "the call was cancelled")

    def _end(self, call, code, message):
        if self._claim(call):
            self._wire.send_bytes(refusal(call.id, code, message))
            self._runner.cancel(call)
            latest = max(time.monotonic(), call.deadline or 0.0) + STUCK_SECONDS
            self._count += 1
            heapq.heappush(self._leaving, (latest, self._count, call))

    def _expire(self):
        now = time.monotonic()
        while self._deadlines and (self._deadlines[0][0] <= now or self._deadlines[0][2].over):
            call = heapq.heappop(self._deadlines)[2]
            if not call.over and (call.asking or call.deadline > now):
                # Its time stands still, or has begun anew, as it has asked somebody.
                self._count += 1
                heapq.heappush(self._deadlines, (max(call.deadline, now + ASKING_LOOK_SECONDS), self._count, call))
                continue
            self._end(call, "execution_timeout", "the tool did not finish within %g s" % (call.seconds or 0))
        while self._leaving and (self._leaving[0][0] <= now or self._leaving[0][2].gone):
            call = heapq.heappop(self._leaving)[2]
            if not call.gone:
                # Only the gateway can end it, together with this worker.
                self._wire.send({"op": "stuck", "id": call.id, "tool": call.tool.name})

    def _abandon(self):
        """The gateway is gone: async tools are told, so that they can clean up."""
        for call in list(self._calls.values()):
            if self._claim(call):
                self._runner.cancel(call)
        self._runner.settle(SETTLE_SECONDS)

    def _close(self):
        for call in list(self._calls.values()):
            self._end(call, "cancelled", "the worker is shutting down")
        self._runner.settle(SETTLE_SECONDS)
        self._ok(self._closing[0], {})
        return 0
