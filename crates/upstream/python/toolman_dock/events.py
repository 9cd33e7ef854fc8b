"""Events: the one asyncio loop, for tools that are async. Imported only where there is one.

The loop has a thread of its own: the main thread reads the protocol, so a tool that blocks the loop does
not make the worker deaf.
"""

import asyncio
import threading

from .stdio import EXIT_GARBAGE, leave, say


class Loop:
    def __init__(self):
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, name="async-tools", daemon=True).start()

    def _run(self):
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        except Exception as error:
            # A tool has closed the loop's own descriptors, say. No async call would ever end.
            say("the loop of the async tools has failed: %s\n" % error)
            leave(EXIT_GARBAGE)

    def start(self, coroutine, context, call):
        """Runs a coroutine as a task in the context of its call, whose `task` it becomes."""
        def begin():
            if call.over:
                coroutine.close()
                call.gone = True
            else:
                # The context is current here, and a task takes a copy of the current one.
                call.task = self._loop.create_task(coroutine)

        self._loop.call_soon_threadsafe(begin, context=context)

    def cancel(self, call):
        def end():
            if call.task is not None:
                call.task.cancel()

        self._loop.call_soon_threadsafe(end)

    def settle(self, seconds):
        """Waits for the tasks that are left, but not longer than this."""
        done = threading.Event()

        async def wait():
            left = asyncio.all_tasks() - {asyncio.current_task()}
            if left:
                await asyncio.wait(left, timeout=seconds)
            done.set()

        self._loop.call_soon_threadsafe(lambda: self._loop.create_task(wait()))
        done.wait(seconds)


async def finished(awaitable):
    """An awaitable of any kind as a coroutine, which is what a task needs."""
    return await awaitable
