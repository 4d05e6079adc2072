"""How the options have images read."""

# pyright: strict

from ...sampler import Sampler
from ..grammar.option_groups import Options
from .programs import ReadOptions


def read_options(options: Options) -> ReadOptions:
    """The sampler of the options, and what it does not say."""
    is_frame = options.address_mode == "frame"
    if options.command == "resize":
        address_mode, is_frame = "clamp", False
    elif options.address_mode != "frame":
        address_mode = options.address_mode
    else:
        # A point read has no taps to mix: it shows a texel, or the border color.
        address_mode = "border" if options.filter_mode == "point" else "clamp"
    antialias = options.antialias
    if antialias is None:
        antialias = options.command == "resize" and options.filter_mode != "point"
    is_area = options.filter_mode == "area"
    filter_mode = "linear" if options.filter_mode == "area" else options.filter_mode
    sampler = Sampler(address_mode=address_mode, filter_mode=filter_mode)
    return ReadOptions(sampler, antialias, is_frame and filter_mode != "point", options.linear_light, is_area)
