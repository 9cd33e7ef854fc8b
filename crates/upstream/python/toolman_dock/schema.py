"""JSON Schema from shapes.

A named shape that is used once is written in its place, because many clients read `$ref` badly; one
that is used more often, or inside itself, goes to `$defs`, so that a schema never grows faster than the
source it comes from. Titles are not generated.
"""

from .plain import plain
from .shapes import (
    MISSING, Array, Choice, Either, Fixed, Foreign, Map, Noted, Record, Scalar, Text, bare, parts,
)

JSON_TYPES = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (type(None), "null"))


class Writer:
    """Writes the shapes of one schema; `closed` records take no other members (arguments do not)."""

    def __init__(self, roots, closed):
        self.closed = closed
        self.uses, self.names, self.defs = {}, {}, {}
        self.keep = list(roots)
        for root in self.keep:
            self._count(root, ())

    def _count(self, shape, above):
        if isinstance(shape, (Record, Choice)) and shape.name:
            key = id(shape)
            self.uses[key] = self.uses.get(key, 0) + (2 if key in above else 1)
            if self.uses[key] > 1:
                return
            above = above + (key,)
        for part in parts(shape):
            self._count(part, above)

    def write(self, shape):
        if self.uses.get(id(shape), 0) < 2:
            return self.whole(shape)
        if id(shape) not in self.names:
            name, number = shape.name, 2
            while name in self.defs:
                name, number = "%s_%d" % (shape.name, number), number + 1
            self.names[id(shape)] = name
            self.defs[name] = None
            self.defs[name] = self.whole(shape)
        return {"$ref": "#/$defs/" + self.names[id(shape)]}

    def whole(self, shape):
        """The schema of a shape itself, with its own definition at this place."""
        if isinstance(shape, Scalar):
            return {"type": shape.kind}
        if isinstance(shape, Text):
            return text(shape.format)
        if isinstance(shape, Array):
            made = {"type": "array", "items": self.write(shape.item)}
            if shape.build in ("set", "frozenset"):
                made["uniqueItems"] = True
            return made
        if isinstance(shape, Fixed):
            return {"type": "array", "prefixItems": [self.write(item) for item in shape.items],
                    "minItems": len(shape.items), "maxItems": len(shape.items)}
        if isinstance(shape, Map):
            return self._map(shape)
        if isinstance(shape, Either):
            return {"anyOf": [self.write(option) for option in shape.options]}
        if isinstance(shape, Choice):
            return choice(shape)
        if isinstance(shape, Record):
            return self._record(shape)
        if isinstance(shape, Noted):
            made = dict(self.write(shape.shape))
            made.update(shape.limits)
            made.update({key: plain(value) for key, value in shape.words.items()})
            return made
        if isinstance(shape, Foreign):
            return self._foreign(shape.schema if self.closed else shape.output)
        return {}

    def _map(self, shape):
        inner = self.write(shape.value)
        made = {"type": "object", "additionalProperties": inner if inner else True}
        key = bare(shape.key)
        if isinstance(key, Choice) and all(isinstance(value, str) for value in key.values):
            made["propertyNames"] = {"enum": list(key.values)}
        return made

    def _record(self, shape):
        made = {"type": "object", "properties": self.properties(shape.fields)}
        required = [field.name for field in shape.fields if field.required]
        if required:
            made["required"] = required
        if self.closed:
            made["additionalProperties"] = False
        if shape.description:
            made["description"] = shape.description
        return made

    def properties(self, fields):
        made = {}
        for field in fields:
            inner = dict(self.write(field.shape))
            if field.description and "description" not in inner:
                inner["description"] = field.description
            if field.default is not MISSING:
                inner["default"] = field.default
            made[field.name] = inner
        return made

    def _foreign(self, schema):
        schema = dict(schema)
        inner = schema.pop("$defs", {})
        renamed = {}
        for name in inner:
            fresh, number = name, 2
            while fresh in self.defs and self.defs[fresh] != without_titles(inner[name], renamed):
                fresh, number = "%s_%d" % (name, number), number + 1
            renamed[name] = fresh
        for name, part in inner.items():
            self.defs[renamed[name]] = without_titles(part, renamed)
        return without_titles(schema, renamed)

    def finish(self, schema):
        if self.defs:
            schema["$defs"] = self.defs
        return schema


def text(format):
    if format == "decimal":
        return {"anyOf": [{"type": "string", "format": "decimal"}, {"type": "number"}]}
    if format == "byte":
        return {"type": "string", "format": "byte", "contentEncoding": "base64"}
    return {"type": "string", "format": format}


def choice(shape):
    made = {"enum": list(shape.values)}
    kinds = {next((name for kind, name in JSON_TYPES if isinstance(value, kind)), None) for value in shape.values}
    if len(kinds) == 1:
        made["type"] = kinds.pop()
    if shape.description:
        made["description"] = shape.description
    return made


def without_titles(schema, renamed):
    """A foreign schema without the titles that were made from names, and with its references renamed."""
    if isinstance(schema, list):
        return [without_titles(part, renamed) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key == "$ref" and isinstance(value, str):
            name = value.rpartition("/")[2]
            made[key] = "#/$defs/" + renamed.get(name, name)
        elif key in ("properties", "patternProperties", "$defs") and isinstance(value, dict):
            made[key] = {name: without_titles(part, renamed) for name, part in value.items()}
        elif key in ("default", "const", "enum", "examples", "mapping"):
            made[key] = value
        else:
            made[key] = without_titles(value, renamed)
    return made


def input_schema(fields, extra):
    """The schema of a tool's arguments; `extra` says that a function takes any others too."""
    writer = Writer([field.shape for field in fields], closed=True)
    made = {"type": "object", "properties": writer.properties(fields), "additionalProperties": bool(extra)}
    required = [field.name for field in fields if field.required]
    if required:
        made["required"] = required
    return writer.finish(made)


def output_schema(shape):
    """The schema of a tool's result and whether the result is wrapped: outputs must be objects."""
    writer = Writer([shape], closed=False)
    inner = bare(shape)
    if isinstance(inner, (Record, Map)):
        return writer.finish(writer.whole(inner)), False
    made = writer.write(shape)
    if isinstance(inner, Foreign):
        target = made
        while "$ref" in target:
            target = writer.defs[target["$ref"].rpartition("/")[2]]
        if target.get("type") == "object":
            return writer.finish(dict(target)), False
    wrapped = {"type": "object", "properties": {"result": made}, "required": ["result"],
               "x-fastmcp-wrap-result": True}
    return writer.finish(wrapped), True
