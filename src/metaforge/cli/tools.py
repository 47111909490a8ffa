"""`metaforge tools`: the catalogue for people."""

import json
from typing import Any

from metaforge.app import App
from metaforge.cli.local import with_app
from metaforge.cli.screen import console, print_json
from metaforge.core.errors import MetaForgeError
from metaforge.mcp.listing import list_body
from metaforge.registry.profiles import BYTES_PER_TOKEN, PROFILES, find_profile
from metaforge.tools.manifest import Tool


def show(name: str, profile: str, *, as_json: bool) -> int:
    """List the tools, or those of a profile, or explain one. Returns the exit status.

    Raises:
        UnknownProfile: there is no such profile.
    """
    if profile:
        find_profile(profile)

    async def work(app: App) -> int:
        return _explain(app, name, as_json=as_json) if name else _list(app, profile, as_json=as_json)

    return with_app(work)


def first_sentence(text: str) -> str:
    """Return the first sentence of a description."""
    return text.split(". ")[0].rstrip(".") + "."


def _list(app: App, profile: str, *, as_json: bool) -> int:
    tools = app.registry.listed()
    unavailable = app.registry.unavailable()
    if profile:
        served = PROFILES[profile].tools
        tools = [tool for tool in tools if tool.id in served]
        unavailable = [kept for entry in unavailable if (kept := entry.within(served))]
    if as_json:
        print_json({"tools": [_brief(tool) for tool in tools], "unavailable": [entry.wire() for entry in unavailable]})
        return 0
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("tool", "effect", "what it does"):
        table.add_column(title, no_wrap=title != "what it does")
    for tool in tools:
        table.add_row(tool.id, str(tool.effect), first_sentence(tool.description))
    out = console()
    out.print(table)
    for entry in unavailable:
        mend = f"; to add: {entry.install}" if entry.install else ""
        out.print(
            f"\nNot available: {', '.join(entry.tools) or entry.adapter_id} ({entry.reason}{mend})", style="yellow"
        )
    cost = f", {_tokens(tools):,.0f} tokens to a model" if profile else ""
    first = tools[0].id if tools else "TOOL"
    out.print(f"\n{len(tools)} tools{cost}. Arguments of one: metaforge tools {first}", style="dim")
    return 0


def _tokens(tools: list[Tool]) -> float:
    """Return what a profile's list costs a model, about."""
    import orjson

    return len(orjson.dumps(list_body(tools, {}, is_brief=True))) / BYTES_PER_TOKEN


def _brief(tool: Tool) -> dict[str, Any]:
    return {
        "tool_id": tool.id,
        "title": tool.name,
        "effect": str(tool.effect),
        "description": tool.description,
        "timeout_seconds": tool.timeout_seconds,
    }


def _explain(app: App, name: str, *, as_json: bool) -> int:
    try:
        tool = app.registry.find(name)
    except MetaForgeError as fault:
        console(stderr=True).print(fault.message, style="red")
        return 1
    if as_json:
        schemas = {"input_schema": tool.input_schema, "output_schema": tool.output_schema}
        print_json(_brief(tool) | {"annotations": tool.annotations} | schemas)
        return 0
    out = console()
    out.print(f"{tool.id}  ({tool.effect}, at most {tool.timeout_seconds:g} s)\n", style="bold")
    out.print(tool.description + "\n")
    out.print("Arguments", style="bold")
    for line in argument_lines(tool.input_schema) or ["none"]:
        out.print("  " + line)
    if reason := app.registry.unavailable_reason(tool.id):
        out.print(f"\nNot available here: {reason[0]}; to add: {reason[1]}", style="yellow")
    return 0


def argument_lines(schema: dict[str, Any], depth: int = 0) -> list[str]:
    """Return one line per argument, nested objects indented below theirs."""
    lines: list[str] = []
    definitions = schema.get("$defs", {})
    _describe(schema, definitions, depth, lines, frozenset())
    return lines


def _describe(
    schema: dict[str, Any], definitions: dict[str, Any], depth: int, lines: list[str], above: frozenset[str]
) -> None:
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        parts = [f"{'  ' * depth}{name}: {kind_of(field, definitions)}"]
        if name in required:
            parts.append("required")
        elif "default" in field:
            parts.append(f"default {json.dumps(field['default'])}")
        if text := field.get("description"):
            parts.append(text)
        lines.append(" - ".join(parts))
        _describe_inside(field, definitions, depth + 1, lines, above)


def _describe_inside(
    field: dict[str, Any], definitions: dict[str, Any], depth: int, lines: list[str], above: frozenset[str]
) -> None:
    """Describe the objects that a field or its list holds, each choice under its name."""
    pad = "  " * depth
    if "properties" in field.get("items", ()):
        _describe(field["items"], definitions, depth + 1, lines, above)
    for branch in field.get("anyOf", ()):
        if "properties" in branch:
            lines.append(f"{pad}{branch.get('description', 'object')}:")
            _describe(branch, definitions, depth + 1, lines, above)
    references = _references(field)
    for reference in references:
        if reference not in above and "properties" in definitions.get(reference, {}):
            if len(references) > 1:
                lines.append(f"{pad}{reference}:")
            _describe(definitions[reference], definitions, depth + 1, lines, above | {reference})


def _references(field: dict[str, Any]) -> list[str]:
    """Return the definitions a field may hold, in their order."""
    found = [field["$ref"].rpartition("/")[2]] if "$ref" in field else []
    for inner in (field.get("items"), *field.get("anyOf", ()), *field.get("oneOf", ()), *field.get("allOf", ())):
        if isinstance(inner, dict):
            found += _references(inner)
    return list(dict.fromkeys(found))


def kind_of(field: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Return a JSON schema's type in a few words: `number > 0`, `box|plate`, `list of string`."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        target = definitions.get(name, {})
        return kind_of(target, definitions) if "enum" in target else name
    if "const" in field:
        return repr(field["const"])
    if "enum" in field:
        return "|".join(map(str, field["enum"]))
    for word in ("anyOf", "oneOf"):
        if word in field:
            kinds = [kind_of(each, definitions) for each in field[word] if each.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    if "prefixItems" in field:
        kinds = [kind_of(each, definitions).split(" ")[0] for each in field["prefixItems"]]
        return f"{len(kinds)} x {kinds[0]}" if len(set(kinds)) == 1 else f"({', '.join(kinds)})"
    if field.get("type") == "array":
        kind = kind_of(field.get("items", {}), definitions)
        count = field.get("minItems")
        return f"{count} x {kind}" if count and count == field.get("maxItems") else f"list of {kind}"
    limits = [
        f"{sign} {field[word]:g}"
        for word, sign in (
            ("exclusiveMinimum", ">"), ("minimum", ">="), ("exclusiveMaximum", "<"), ("maximum", "<=")
        )
        if word in field
    ]  # fmt: skip
    kind = "file to read" if field.get("format") == "input-path" else str(field.get("type", "any"))
    kind = "file to write" if field.get("format") == "output-path" else kind
    kind = "folder to write" if field.get("format") == "output-folder" else kind
    return " ".join([kind, *limits])
