"""Make a palette from one colour, in which text can be read: pure arithmetic, without Django.

The colour is kept where it is dark enough for white text and for links on light grounds; otherwise its
own hue is made darker, and lighter for dark grounds. Lightness is OKLab's (Björn Ottosson,
https://bottosson.github.io/posts/oklab/); contrast is WCAG 2's, where 4.5 is asked for text.
"""

import re
from dataclasses import dataclass
from typing import Final

Colour = tuple[float, float, float]
"""Red, green and blue in sRGB, each from 0 to 1."""

LEAST_CONTRAST: Final = 4.5
_HEX: Final = re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_LIGHT_GROUND: Final = "#ece6da"
"""Darker than each light ground that text of the palette stands on, in the admin and in the pages."""
_DARK_GROUND: Final = "#30291f"
"""Lighter than each dark one but the admin's menus."""
_DARK_MENU: Final = "#1e2939"

_STEPS: Final = {
    # name: (lightness, share of the colour's own chroma); as Tailwind's palettes, of which Unfold is made
    "50": (0.977, 0.05),
    "100": (0.946, 0.11),
    "200": (0.902, 0.22),
    "300": (0.827, 0.41),
    "400": (0.714, 0.70),
    "500": (0.660, 0.92),
    "600": (0.558, 1.00),
    "700": (0.496, 0.92),
    "800": (0.438, 0.76),
    "900": (0.381, 0.61),
    "950": (0.270, 0.45),
}


@dataclass(frozen=True)
class _LabColour:
    """A colour as OKLab has it: how light, and the two axes of its chroma."""

    lightness: float
    a: float
    b: float


def is_colour(text: str) -> bool:
    """Return whether it is #rgb or #rrggbb."""
    return bool(_HEX.fullmatch(text))


def palette(colour: str) -> dict[str, str]:
    """Return shades by Tailwind's names, "50" (lightest) to "950", as #rrggbb.

    White text stands on "600", "700"; both, as text, on any light ground; "400" and "500" on any
    dark one.
    """
    own = _tone(_read(colour))
    shades = {name: _shade(own, *step) for name, step in _STEPS.items()}
    light, dark = [_LIGHT_GROUND, "#ffffff"], [_DARK_GROUND, _DARK_MENU]
    shades["600"] = _readable(own, [*light, shades["100"]], step=-0.005)
    deeper = _tone(_read(shades["600"]))
    shades["700"] = _shade(deeper, deeper.lightness * 0.88, 0.95)
    shades["500"] = _readable(_tone(_read(shades["500"])), dark, step=0.005)
    lighter = max(_tone(_read(shades["500"])).lightness + 0.04, _STEPS["400"][0])
    shades["400"] = _readable(
        _scale(own, min(lighter, 0.97), 0.8), [*dark, shades["950"]], step=0.005
    )
    return shades


def contrast(one: str, other: str) -> float:
    """Return WCAG's ratio, from 1 to 21."""
    darker, lighter = sorted((_luminance(_read(one)), _luminance(_read(other))))
    return (lighter + 0.05) / (darker + 0.05)


def _readable(tone: _LabColour, grounds: list[str], *, step: float) -> str:
    """Change the lightness by steps until the colour can be read on all grounds."""
    lightness = tone.lightness
    shade = _shade(tone, lightness, 1)
    while 0 < lightness < 1 and min(contrast(shade, each) for each in grounds) < LEAST_CONTRAST:
        lightness += step
        shade = _shade(tone, lightness, 1)
    return shade


def _shade(tone: _LabColour, lightness: float, chroma: float) -> str:
    """Return the colour of this lightness, with as much of the chroma as a screen can show."""
    red_green_blue = _colour(_scale(tone, lightness, chroma))
    while not all(-0.0005 <= part <= 1.0005 for part in red_green_blue) and chroma > 0.01:
        chroma *= 0.96
        red_green_blue = _colour(_scale(tone, lightness, chroma))
    return "#" + "".join(f"{round(min(max(part, 0), 1) * 255):02x}" for part in red_green_blue)


def _scale(tone: _LabColour, lightness: float, chroma: float) -> _LabColour:
    return _LabColour(lightness, tone.a * chroma, tone.b * chroma)


def _read(text: str) -> Colour:
    digits = text[1:] if len(text) == 7 else "".join(digit * 2 for digit in text[1:])
    red, green, blue = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    return red, green, blue


def _luminance(colour: Colour) -> float:
    red, green, blue = map(_linear, colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def _compand(part: float) -> float:
    if part <= 0.0031308:
        return part * 12.92
    return float(1.055 * part ** (1 / 2.4) - 0.055)


def _tone(colour: Colour) -> _LabColour:
    red, green, blue = map(_linear, colour)
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return _LabColour(
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def _colour(tone: _LabColour) -> Colour:
    long = (tone.lightness + 0.3963377774 * tone.a + 0.2158037573 * tone.b) ** 3
    medium = (tone.lightness - 0.1055613458 * tone.a - 0.0638541728 * tone.b) ** 3
    short = (tone.lightness - 0.0894841775 * tone.a - 1.2914855480 * tone.b) ** 3
    return (
        _compand(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short),
        _compand(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short),
        _compand(-0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short),
    )
