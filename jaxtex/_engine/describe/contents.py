"""What the arrays of each primitive of a read hold."""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from .spec import TEXELS, ReadSpec, Wrt


class Content(Enum):
    """What an array holds behind its batch axes: its dimensions."""

    TEXTURE = "texels, sizes + (C,)"
    COLOR = "one texel, (C,)"
    VALUES = "values of samples, S + (C,)"
    SAMPLES = "numbers of samples, S; an operand's broadcast to it"


class Layout(NamedTuple):
    """What the arrays of a primitive hold: the arguments before the operands of the grid, and the results."""

    operands: Callable[[ReadSpec, Wrt], tuple[Content, ...]]
    results: Callable[[Wrt], tuple[Content, ...]]

    def makes_texture(self, wrt: Wrt) -> bool:
        """Whether a result is a sum into texels."""
        return Content.TEXTURE in self.results(wrt)

    def textures(self, spec: ReadSpec, wrt: Wrt) -> tuple[int, ...]:
        """The positions of the arguments that hold texels, or the color outside them."""
        return tuple(k for k, a in enumerate(self.operands(spec, wrt)) if a in (Content.TEXTURE, Content.COLOR))


def of_wrt(wrt: Wrt) -> tuple[Content, ...]:
    """What the tangents, or the cotangents, of texels and operands hold."""
    return tuple(Content.TEXTURE if k == TEXELS else Content.SAMPLES for k in wrt)


READ = Layout(
    lambda spec, _: (Content.TEXTURE, Content.COLOR) if spec.has_color else (Content.TEXTURE,),
    lambda _: (Content.VALUES,),
)
SPLAT = Layout(lambda *_: (Content.VALUES,), lambda _: (Content.TEXTURE,))
PUSHFORWARD = Layout(lambda _, wrt: (*of_wrt(wrt), Content.TEXTURE), lambda _: (Content.VALUES,))
PULLBACK = Layout(lambda *_: (Content.VALUES, Content.TEXTURE), of_wrt)
