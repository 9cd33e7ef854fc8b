"""Every secret that this process was given, in all spellings."""

import base64
import json
import os
import re
from urllib.parse import quote, quote_plus

VALUES = [os.environ[name] for name in sorted(os.environ) if name.startswith("CANARY_")]


def spell(value):
    data = value.encode()
    yield from (value, json.dumps(value), repr(value))
    yield from (data.hex(), data.hex().upper(), quote(value, safe=""), quote(value), quote_plus(value))
    yield from (quote(value, safe="!*'();,/?:@&=+$#"), quote(value, safe="!*'()"), re.sub("%..", lambda found: found[0].lower(), quote(value)))
    yield "".join("%%%02x" % byte for byte in data)
    for before in (b"", b"x", b"xy"):
        yield base64.b64encode(before + data).decode()
        yield base64.urlsafe_b64encode(before + data + b"!").decode().rstrip("=")


def everything():
    return [spelling for value in VALUES for spelling in spell(value)]
