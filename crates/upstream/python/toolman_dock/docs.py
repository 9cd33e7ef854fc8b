"""Docstrings: the description of a tool and of its parameters.

Google (`Args:`), NumPy (a heading underlined with dashes) and Sphinx (`:param x:`) styles are read; the
description is what stands before the first of such sections.
"""

SECTIONS = {
    "args", "arguments", "parameters", "params", "other parameters", "keyword args", "keyword arguments",
    "attributes", "returns", "return", "yields", "yield", "raises", "raise", "except", "exceptions",
    "example", "examples", "note", "notes", "warning", "warnings", "warns", "see also", "references", "todo",
}
PARAMETERS = {
    "args", "arguments", "parameters", "params", "other parameters", "keyword args", "keyword arguments",
    "attributes",
}
# These belong to the description: they tell a model how to use the tool.
TOLD = {"example", "examples", "note", "notes", "warning", "warnings"}
FIELDS = (":param", ":parameter", ":arg", ":argument", ":key", ":keyword", ":return", ":returns", ":rtype",
          ":raises", ":raise", ":type", ":yields", ":ytype")


def clean(text):
    """A docstring without the indentation of its source."""
    lines = text.expandtabs().split("\n")
    rest = [line for line in lines[1:] if line.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in rest), default=0)
    lines = [lines[0].strip()] + [line[margin:].rstrip() for line in lines[1:]]
    return "\n".join(lines).strip("\n")


def parse(text):
    """The description (or None) and the parameters' descriptions by name."""
    if not text:
        return None, {}
    lines = clean(text).split("\n")
    described, parameters, index = [], {}, 0
    reading = True
    while index < len(lines):
        line = lines[index]
        title = _heading(lines, index)
        if title is not None:
            end = _section_end(lines, index)
            if title in PARAMETERS:
                parameters.update(_numpy(lines[index + 2:end]) if _underlined(lines, index)
                                  else _google(lines[index + 1:end]))
            reading = False
            index = end
            continue
        if line.startswith(FIELDS):
            end = index + 1
            while end < len(lines) and (lines[end].startswith(" ") and lines[end].strip()):
                end += 1
            name, told = _sphinx(lines[index:end])
            if name:
                parameters.setdefault(name, told)
            reading = False
            index = end
            continue
        if reading:
            described.append(line)
        index += 1
    return "\n".join(described).strip() or None, {name: told for name, told in parameters.items() if told}


def _underlined(lines, index):
    return (index + 1 < len(lines) and len(lines[index + 1].strip()) >= 3
            and set(lines[index + 1].strip()) == {"-"})


def _heading(lines, index):
    line = lines[index]
    if not line or line[0] == " ":
        return None
    if _underlined(lines, index):
        title = line.strip().lower()
        return title if title in SECTIONS else None
    if not line.endswith(":"):
        return None
    title = line[:-1].strip().lower()
    if title not in SECTIONS or title in TOLD:
        return None
    following = lines[index + 1] if index + 1 < len(lines) else ""
    return title if not following or following.startswith(" ") else None


def _section_end(lines, index):
    underlined = _underlined(lines, index)
    end = index + (2 if underlined else 1)
    while end < len(lines):
        if _heading(lines, end) is not None or lines[end].startswith(FIELDS):
            break
        if not underlined and lines[end] and not lines[end].startswith(" "):
            break
        end += 1
    return end


def _google(lines):
    found, margin, name = {}, None, None
    for line in lines:
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        margin = indent if margin is None else margin
        head, colon, told = line.strip().partition(":")
        word = head.partition("(")[0].strip().lstrip("*")
        if indent <= margin and colon and word.isidentifier():
            name = word
            found[name] = told.strip()
        elif name is not None:
            found[name] = (found[name] + " " + line.strip()).strip()
    return found


def _numpy(lines):
    found, names = {}, ()
    for line in lines:
        if line and not line.startswith(" "):
            head = line.partition(":")[0]
            names = [word.strip().lstrip("*") for word in head.split(",")]
            names = [word for word in names if word.isidentifier()]
            for name in names:
                found[name] = ""
        elif line.strip():
            for name in names:
                found[name] = (found[name] + " " + line.strip()).strip()
    return found


def _sphinx(lines):
    head, _, told = lines[0][1:].partition(":")
    words = head.split()
    text = " ".join([told.strip()] + [line.strip() for line in lines[1:]]).strip()
    if len(words) >= 2 and words[0] in ("param", "parameter", "arg", "argument", "key", "keyword"):
        return words[-1].lstrip("*"), text
    return None, text
