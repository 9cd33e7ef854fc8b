"""Depth: how far JSON texts may be nested, so that the gateway can read what a worker says.

The gateway reads 128 levels. A frame adds a few of its own, and so does what is made of it for clients.
"""

DEPTH_MAX = 100


def is_too_deep(text):
    """Whether a JSON text, as bytes, is nested deeper than is carried."""
    if text.count(b"[") + text.count(b"{") <= DEPTH_MAX:
        return False
    import re
    from array import array
    from itertools import accumulate

    bare = re.sub(rb'"[^"\\]*(?:\\.[^"\\]*)*"', b"", text)
    brackets = b"[]{}"
    others = bytes(one for one in range(256) if one not in brackets)
    # Up and down by one: a byte of 255 is -1 to an array of signed ones.
    steps = array("b", bare.translate(bytes.maketrans(brackets, b"\x01\xff\x01\xff"), others))
    return max(accumulate(steps), default=0) > DEPTH_MAX
