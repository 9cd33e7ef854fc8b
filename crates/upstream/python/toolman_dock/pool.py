"""The pool: threads for tools that are not async, made when they are needed and kept.

Threads that are stuck in a tool are nobody's to stop; they are daemons, so the process still ends.
"""

import threading
from _queue import SimpleQueue

THREADS_MAX = 32


class Pool:
    def __init__(self, threads_max=THREADS_MAX):
        self._jobs, self._lock = SimpleQueue(), threading.Lock()
        self._threads, self._waiting, self._threads_max = 0, 0, threads_max

    def submit(self, job):
        """Runs the job on a thread; it handles its own errors."""
        with self._lock:
            if self._waiting > 0:
                self._waiting -= 1
            elif self._threads < self._threads_max:
                self._threads += 1
                threading.Thread(target=self._work, name="tool-%d" % self._threads, daemon=True).start()
        self._jobs.put(job)

    def _work(self):
        while True:
            job = self._jobs.get()
            job()
            del job
            with self._lock:
                self._waiting += 1
