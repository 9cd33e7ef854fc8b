"""The interpreters with real libraries that the tests in this folder need, by name."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

VARIABLE = "TOOLMAN_DOCK_PYTHONS"


def python(name):
    """The path of an interpreter: `fastmcp2`, `fastmcp` or `pydantic`."""
    found = dict(one.partition("=")[::2] for one in os.environ.get(VARIABLE, "").split(":") if one)
    if name not in found:
        raise AssertionError("no interpreter named `%s` in %s; run `cargo xtask test`, which installs them"
                             % (name, VARIABLE))
    return found[name]
