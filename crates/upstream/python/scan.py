"""The static reader: tells the tools of sources that come on stdin, without running any of them.

Run as `python -I -S -B scan.py`. One JSON object a line: `{"file", "source"}` in, the findings out.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    from toolman_dock import scanmain
finally:
    del sys.path[0]

if __name__ == "__main__":
    sys.exit(scanmain.run(sys.stdin.buffer, sys.stdout.buffer))
