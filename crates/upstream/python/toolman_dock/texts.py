"""Texts: strings of a known format into the values that they stand for.

Loaded with the runtime, but each library only when a tool asks for such a value.
"""

import re

_DURATION = r"([+-]?)P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,6})?)S)?)?"


def from_text(format, value):
    """The value; ValueError or ArithmeticError if the text is none."""
    return READERS[format](value)


def _datetime(value):
    from datetime import datetime

    return datetime.fromisoformat(_zulu(value))


def _date(value):
    from datetime import date

    if not re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        raise ValueError("not a date")
    return date.fromisoformat(value)


def _time(value):
    from datetime import time

    return time.fromisoformat(_zulu(value))


def _zulu(value):
    """A trailing `Z`, and fractions of any length, as older Pythons want them."""
    found = re.fullmatch(r"(.*?:\d\d)(?:\.(\d+))?\s*(Z|z|[+-]\d\d:?\d\d)?", value)
    if found is None:
        return value
    start, fraction, zone = found.groups()
    if fraction:
        start += "." + (fraction + "000000")[:6]
    if zone in ("Z", "z"):
        zone = "+00:00"
    elif zone and ":" not in zone:
        zone = zone[:3] + ":" + zone[3:]
    return start + (zone or "")


def _duration(value):
    from datetime import timedelta

    found = re.fullmatch(_DURATION, value)
    if found is None or value[-1] in "PT":
        raise ValueError("not a duration")
    sign, weeks, days, hours, minutes, seconds = found.groups()
    made = timedelta(weeks=int(weeks or 0), days=int(days or 0), hours=int(hours or 0),
                     minutes=int(minutes or 0), seconds=float(seconds or 0))
    return -made if sign == "-" else made


def _uuid(value):
    from uuid import UUID

    return UUID(value)


def _decimal(value):
    from decimal import Decimal

    return Decimal(value)


def _path(value):
    from pathlib import Path

    if "\0" in value:
        raise ValueError("a path has no NUL")
    return Path(value)


def _bytes(value):
    import base64

    return base64.b64decode(value.encode("ascii"), validate=True)


READERS = {
    "date-time": _datetime, "date": _date, "time": _time, "duration": _duration, "uuid": _uuid,
    "decimal": _decimal, "path": _path, "byte": _bytes,
}
