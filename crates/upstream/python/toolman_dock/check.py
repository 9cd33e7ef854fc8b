"""Checking: whether a JSON value matches a JSON Schema, for the results that tools promised.

It knows the keywords that our own schemas and pydantic's use; others mean nothing to it, as the
specification has it for keywords that are not known.
"""

import re

DEPTH_MAX = 200
KINDS = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: not isinstance(value, bool)
    and (isinstance(value, int) or isinstance(value, float) and value.is_integer()),
}
WORDS = {"object": "an object", "array": "an array", "string": "a string", "boolean": "true or false",
         "null": "null", "number": "a number", "integer": "an integer"}

COMPARE = {
    "minimum": lambda value, limit: value >= limit,
    "maximum": lambda value, limit: value <= limit,
    "exclusiveMinimum": lambda value, limit: value > limit,
    "exclusiveMaximum": lambda value, limit: value < limit,
}


def check(schema, value):
    """None, or the first fault as (path, what was promised, what there is)."""
    return _check(schema, value, schema, "", 0)


def _check(schema, value, root, path, depth):
    if schema is False:
        return path, "nothing", kind_of(value)
    if schema is True or not schema or depth > DEPTH_MAX:
        return None
    if "$ref" in schema:
        fault = _check(resolve(schema["$ref"], root), value, root, path, depth + 1)
        if fault is not None:
            return fault
    fault = _kind(schema, value, path) or _combined(schema, value, root, path, depth)
    if fault is not None:
        return fault
    if isinstance(value, dict):
        return _object(schema, value, root, path, depth)
    if isinstance(value, list):
        return _array(schema, value, root, path, depth)
    return _limits(schema, value, path)


def resolve(reference, root):
    target = root
    for step in reference.lstrip("#").split("/")[1:]:
        target = target.get(step.replace("~1", "/").replace("~0", "~"), {}) if isinstance(target, dict) else {}
    return target


def kind_of(value):
    if isinstance(value, (str, bool, int, float)) and len(str(value)) <= 40:
        from .plain import to_json

        return to_json(value)
    return next((WORDS[name] for name in ("object", "array", "string", "boolean", "null", "integer", "number")
                 if KINDS[name](value)), "a value")


def _kind(schema, value, path):
    kinds = schema.get("type")
    if kinds is not None:
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if not any(KINDS[kind](value) for kind in kinds if kind in KINDS):
            return path, " or ".join(WORDS.get(kind, str(kind)) for kind in kinds), kind_of(value)
    if "enum" in schema and not any(equal(value, one) for one in schema["enum"]):
        return path, "one of its choices", kind_of(value)
    if "const" in schema and not equal(value, schema["const"]):
        return path, "a constant", kind_of(value)
    return None


def equal(one, other):
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _combined(schema, value, root, path, depth):
    for part in schema.get("allOf", ()):
        fault = _check(part, value, root, path, depth + 1)
        if fault is not None:
            return fault
    for keyword in ("anyOf", "oneOf"):
        options = schema.get(keyword)
        if options:
            faults = [_check(part, value, root, path, depth + 1) for part in options]
            if None not in faults:
                deepest = max(faults, key=lambda fault: len(fault[0]))
                if len(deepest[0]) > len(path):
                    return deepest
                return path, " or ".join(dict.fromkeys(fault[1] for fault in faults)), kind_of(value)
    return None


def _object(schema, value, root, path, depth):
    for name in schema.get("required", ()):
        if name not in value:
            return path, "the member `%s`" % name, "an object without it"
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    others, names = schema.get("additionalProperties", True), schema.get("propertyNames")
    for name, part in value.items():
        place = "%s/%s" % (path, name)
        if names is not None:
            fault = _check(names, name, root, place, depth + 1)
            if fault is not None:
                return fault
        matching = [one for pattern, one in patterns.items() if re.search(pattern, name)]
        if name in properties:
            matching.append(properties[name])
        for one in matching or [others]:
            fault = _check(one, part, root, place, depth + 1)
            if fault is not None:
                return fault
    return _size(schema, len(value), "Properties", path)


def _array(schema, value, root, path, depth):
    first = schema.get("prefixItems", ())
    rest = schema.get("items", True)
    for index, part in enumerate(value):
        one = first[index] if index < len(first) else rest
        fault = _check(one, part, root, "%s/%d" % (path, index), depth + 1)
        if fault is not None:
            return fault
    if schema.get("uniqueItems"):
        from .plain import to_json

        if len({to_json(part) for part in value}) < len(value):
            return path, "items that differ", "an array with the same item twice"
    return _size(schema, len(value), "Items", path)


def _limits(schema, value, path):
    if isinstance(value, str):
        if "pattern" in schema and re.search(schema["pattern"], value) is None:
            return path, "a string that matches `%s`" % schema["pattern"], kind_of(value)
        return _size(schema, len(value), "Length", path)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        for keyword, right in COMPARE.items():
            if keyword in schema and not right(value, schema[keyword]):
                return path, "a number with %s %s" % (keyword, schema[keyword]), kind_of(value)
    return None


def _size(schema, size, noun, path):
    if size < schema.get("min" + noun, 0) or size > schema.get("max" + noun, size):
        return path, "a size within its limits", "a size of %d" % size
    return None
