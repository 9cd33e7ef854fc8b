"""The worker: imports the tool files of one namespace and answers calls over the socket that is its stdin.

Run as `python -I -B worker.py --namespace NS --tools DIR`.
"""

import os
import sys

if sys.version_info < (3, 9):
    sys.stderr.write("Python 3.9 or newer is needed, this is %d.%d\n" % sys.version_info[:2])
    sys.exit(2)

# The runtime is imported before any tool file, and its folder leaves the search path again.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    from toolman_dock import main, stdio
finally:
    del sys.path[0]

if __name__ == "__main__":
    stdio.leave(main.run(sys.argv[1:]))
