"""The controls of the page, and the view that they describe."""

from collections.abc import Callable, Sequence
from typing import Any

import panel as pn  # pyright: ignore[reportMissingImports]
from bokeh.models import CustomJSTickFormatter  # pyright: ignore[reportMissingImports]

from ..pictures.limits import Size
from .layout import CONTROL_STYLE
from .views import ADDRESSES, ANISOTROPIES, ARITHMETICS, FILTERS, LARGEST_TILT, SCALES, View, disabled, without_effect

FACTORS = tuple(2**k for k in range(13))
START_FACTOR = 256
DECIMALS = 1  # of the steps of sliders
LAYOUT = {"sizing_mode": "stretch_width", "margin": (4, 0), "stylesheets": [CONTROL_STYLE]}


class Controls:
    """The controls of one page.

    Args:
        size: width and height of the picture.
    """

    def __init__(self, size: Size) -> None:
        self.size = size
        start, levels = View(), max(max(size).bit_length() - 1, 1)  # a slider has two ends
        self.of_view: dict[str, Any] = {
            "degrees": slider("Rotation (degrees)", -180, 180, 0.5, start.degrees),
            "scale": choice_slider("Scale", SCALES, start.scale),
            "tilt": slider("Tilt (degrees)", 0, LARGEST_TILT, 1, start.tilt),
            "filter": select("Filter", FILTERS, start.filter),
            "address": select("Address mode", ADDRESSES, start.address),
            "level": slider("Level of detail", 0, levels, 0.1, start.level),
            "antialias": pn.widgets.Checkbox(name="Antialias", value=start.antialias, **LAYOUT),
            "anisotropy": select("Anisotropy (reads)", ANISOTROPIES, start.anisotropy),
            "arithmetic": select("Arithmetic", ARITHMETICS, start.arithmetic),
        }
        self.of_factor = choice_slider("Difference times", FACTORS, START_FACTOR)

    def watch(self, changed: Callable[[Any], None]) -> None:
        """Has `changed` called with each event that changes a value."""
        for control in (*self.of_view.values(), self.of_factor):
            control.param.watch(changed, "value")

    def view(self) -> View:
        """The view that the values describe."""
        values: dict[str, Any] = {name: control.value for name, control in self.of_view.items()}
        values["scale"] = SCALES[values["scale"]]
        for name in ("degrees", "tilt", "level"):
            values[name] = round(float(values[name]), DECIMALS)  # a browser adds steps up: 20.50000000000003
        return View(**values)

    def factor(self) -> int:
        """The factor of the differences."""
        return FACTORS[self.of_factor.value]

    def disable(self, view: View) -> tuple[str, ...]:
        """Disables what does not fit the view; returns why controls have no effect, as sentences."""
        for name, values in disabled(view, self.size).items():
            self.of_view[name].disabled_options = values
        idle = without_effect(view)
        for name in ("level", "anisotropy"):
            self.of_view[name].disabled = name in idle
        return tuple(idle.values())


def slider(name: str, start: float, end: float, step: float, value: float) -> Any:
    """A slider over a range."""
    return pn.widgets.FloatSlider(name=name, start=start, end=end, step=step, value=value, **LAYOUT)


def choice_slider(name: str, choices: Sequence[float], value: float) -> Any:
    """A slider over a few numbers, which the browser shows; its value is the place of one, from 0."""
    formatter = CustomJSTickFormatter(args={"choices": list(choices)}, code="return String(choices[tick])")
    last, place = len(choices) - 1, choices.index(value)
    return pn.widgets.IntSlider(name=name, start=0, end=last, value=place, format=formatter, **LAYOUT)


def select(name: str, options: Sequence[Any], value: Any) -> Any:
    """A list of which one is chosen."""
    return pn.widgets.Select(name=name, options=list(options), value=value, **LAYOUT)
