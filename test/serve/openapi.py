"""doc/openapi.json, and whether an answer is as it says. SPDX-License-Identifier: MIT"""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = json.loads((ROOT / "doc/openapi.json").read_text(encoding="utf-8"))
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}


def resolve(node):
    while "$ref" in node:
        path, node = node["$ref"], DOCUMENT
        for name in path.removeprefix("#/").split("/"):
            node = node[name]
    return node


def operations():
    """(method, path, operation) of each."""
    for path, entry in DOCUMENT["paths"].items():
        for method, operation in entry.items():
            if method != "parameters":
                yield method.upper(), path, operation


def routes_of_program():
    """{(method, path): access} of the table in src/serve/routes.c."""
    source = (ROOT / "src/serve/routes.c").read_text(encoding="utf-8")
    table = re.search(r"struct route routes\[\] = \{\n(.*?)\n\};", source, re.DOTALL)[1]
    found = {}
    for line in table.splitlines():
        method, name, access = re.fullmatch(r'\s+\{"(\w+)",\s+"([^"]+)",\s+ACCESS_(\w+),\s+\w+\},', line).groups()
        path = name if name.startswith("/") else "/api/{project}/" + name + ("/" if name == "envelope" else "")
        found[method, path] = "READ" if access == "QUERY" else access
    return found


def parameters_of_program():
    """The names of the tables in src/serve/routes.c."""
    source = (ROOT / "src/serve/routes.c").read_text(encoding="utf-8")
    tables = {name: re.findall(r'"(\w+)"', text) for name, text in
              re.findall(r"static const char \*const (\w+)\[\] = \{(.*?)\};", source, re.DOTALL)}
    selectors = tables["selectors"]
    return set(tables["numbers"] + tables["texts"] + selectors + ["base_" + name for name in selectors])


def faults(schema, value, place="answer"):
    """What is wrong with VALUE: [] if nothing is."""
    schema = resolve(schema)
    if value is None and schema.get("nullable"):
        return []
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (kind != "boolean" and isinstance(value, bool))):
        return [f"{place} is a {type(value).__name__}, not a {kind}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{place} is {value!r}, not one of {schema['enum']}"]
    if schema.get("format") == "date-time" and not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value):
        return [f"{place} is {value!r}, not a time"]
    found = []
    if kind == "array":
        for number, entry in enumerate(value):
            found += faults(schema["items"], entry, f"{place}[{number}]")
    if kind == "object":
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        found += [f"{place} has no {name}" for name in schema.get("required", ()) if name not in value]
        for name, entry in value.items():
            if name in properties:
                found += faults(properties[name], entry, f"{place}.{name}")
            elif others is False:
                found.append(f"{place} has {name}, which is not in the description")
            elif isinstance(others, dict):
                found += faults(others, entry, f"{place}.{name}")
    return found
