"""Named numbers, and properties that follow an expression over them."""

from typing import Any

from .edits import Edit
from .refusals import Refusal, words_of
from .seam import add_variables


def create_variable_set(edit: Edit, given: dict[str, Any]) -> None:
    made = add_variables(edit.document.doc, given["name"] or "Variables")
    made.Label = given["name"] or "Variables"
    for name, value in given["variables"].items():
        if name in made.PropertiesList:
            raise Refusal(f"{name} is a name that FreeCAD needs itself", "name_taken", "choose another name", name)
        made.addProperty("App::PropertyFloat", name, "Variables")
        setattr(made, name, value)
    edit.document.recompute()
    edit.result(made, variables=given["variables"])


def set_expression(edit: Edit, given: dict[str, Any]) -> None:
    document = edit.document
    thing = document.find(given["obj_id"])
    name, expression = given["property"], given["expression"]
    first = name.split(".")[0]
    if first not in thing.PropertiesList:
        near = [each for each in thing.PropertiesList if each[0].isupper() and not each.startswith("Label")]
        raise Refusal(
            f"{thing.Name} has no property {first}", "no_such_property", f"it has {', '.join(near)}", thing.Name
        )
    body = document.body_of(thing) or (thing.getParentGeoFeatureGroup() if first == "Constraints" else None)
    measured = body or thing
    edit.before(measured)
    try:
        thing.setExpression(name, expression or None)
    except Exception as fault:
        raise Refusal(
            f"{expression!r} cannot be set on {thing.Name}.{name}: {words_of(fault)}", "bad_expression",
            "write numbers and names such as Variables.wall * 2", thing.Name,
        ) from fault  # fmt: skip
    document.recompute()
    edit.result(thing, measured, value=_number(thing, name))


def _number(thing: Any, name: str) -> float | None:
    first, _, rest = name.partition(".")
    found = thing.getDatum(rest) if first == "Constraints" and rest else getattr(thing, first)
    found = getattr(found, "Value", found)
    return float(found) if isinstance(found, int | float) else None
