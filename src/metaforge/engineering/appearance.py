"""What colour a material is, for parts that are looked at: sRGB by the words of a material's name."""

import re

from metaforge.core.errors import InvalidArguments

Colour = tuple[float, float, float]
"""Red, green and blue in sRGB, 0 to 1."""

# The first row whose words all stand in a name counts, so birch plywood comes before plywood, and that before wood.
TABLE: tuple[tuple[tuple[str, ...], Colour], ...] = (
    (("birch", "plywood"), (0.87, 0.76, 0.57)),
    (("plywood",), (0.80, 0.66, 0.45)),
    (("mdf",), (0.66, 0.52, 0.37)),
    (("oak",), (0.71, 0.55, 0.35)),
    (("walnut",), (0.36, 0.25, 0.17)),
    (("beech",), (0.82, 0.62, 0.44)),
    (("pine",), (0.88, 0.74, 0.51)),
    (("wood",), (0.73, 0.57, 0.38)),
    (("stainless",), (0.75, 0.76, 0.78)),
    (("cast", "iron"), (0.33, 0.33, 0.34)),
    (("steel",), (0.60, 0.62, 0.64)),
    (("aluminium",), (0.81, 0.83, 0.85)),
    (("aluminum",), (0.81, 0.83, 0.85)),
    (("titanium",), (0.64, 0.62, 0.59)),
    (("magnesium",), (0.72, 0.72, 0.70)),
    (("brass",), (0.80, 0.67, 0.32)),
    (("bronze",), (0.65, 0.46, 0.27)),
    (("copper",), (0.78, 0.47, 0.33)),
    (("gold",), (0.90, 0.74, 0.33)),
    (("carbon", "fibre"), (0.13, 0.13, 0.14)),
    (("carbon", "fiber"), (0.13, 0.13, 0.14)),
    (("fr4",), (0.16, 0.42, 0.24)),
    (("petg",), (0.78, 0.84, 0.86)),
    (("pla",), (0.90, 0.90, 0.88)),
    (("abs",), (0.20, 0.21, 0.23)),
    (("polycarbonate",), (0.80, 0.86, 0.89)),
    (("pom",), (0.93, 0.93, 0.91)),
    (("nylon",), (0.90, 0.88, 0.82)),
    (("pa66",), (0.90, 0.88, 0.82)),
    (("pa12",), (0.85, 0.85, 0.84)),
    (("peek",), (0.72, 0.62, 0.47)),
    (("tpu",), (0.15, 0.15, 0.17)),
    (("rubber",), (0.11, 0.11, 0.12)),
    (("silicone",), (0.83, 0.83, 0.84)),
    (("acrylic",), (0.84, 0.91, 0.94)),
    (("glass",), (0.78, 0.90, 0.90)),
    (("concrete",), (0.62, 0.61, 0.59)),
)  # fmt: skip
_ALIASES = {"s235": "steel", "s355": "steel", "316": "stainless", "316l": "stainless", "304": "stainless"}


def colour_of(material: str) -> Colour | None:
    """Return the colour of a material such as `18 mm birch plywood`, or None: no colour is invented."""
    words = set(re.findall(r"[a-z0-9]+", material.lower()))
    words |= {_ALIASES[word] for word in words & _ALIASES.keys()}
    return next((colour for wanted, colour in TABLE if words.issuperset(wanted)), None)


def checked_colour(numbers: list[float], argument: str) -> Colour:
    """Return three numbers as a colour; where one is above 1 they are taken as 0 to 255.

    Raises:
        InvalidArguments: not three numbers of 0 to 1 or 0 to 255.
    """
    if len(numbers) == 3 and all(0 <= each <= 255 for each in numbers):
        scale = 255.0 if max(numbers) > 1 else 1.0
        red, green, blue = (each / scale for each in numbers)
        return (red, green, blue)
    raise InvalidArguments(
        f"{argument}: {numbers} is no colour: give red, green, blue as 0 to 1 or 0 to 255",
        fields={argument: "three numbers of 0 to 1, or of 0 to 255"},
    )
