"""What an arithmetic of reads must provide. Float arithmetic and that of a texture unit are the two there are."""

import abc

import jax

from .._checks.arguments import ReadArguments
from ..sampler import Sampler
from ..texture import Texture
from .describe.plan import Layout, ResolvedLevel, SizedTexture
from .describe.read import Read


class ReadArithmetic(abc.ABC):
    """An arithmetic of reads: how levels, positions along a footprint and values are computed.

    A read takes three steps: `resolve_level`, once a call; `along_footprint`, for each of several reads; and `read`,
    of what `plan_of_level` makes of the two. It has no state, so that its instances are static, equal and hashed.
    """

    @abc.abstractmethod
    def resolve_level(self, layout: Layout, arguments: ReadArguments, sampler: Sampler) -> ResolvedLevel:
        """The level of detail of a call, and the extent of its footprint. A texture of one level has no level."""

    @abc.abstractmethod
    def located(self, layout: Layout, resolved: ResolvedLevel) -> ResolvedLevel:
        """The call where its one read lies."""

    @abc.abstractmethod
    def along_footprint(
        self, layout: Layout, resolved: ResolvedLevel, number: jax.Array
    ) -> tuple[ResolvedLevel, jax.Array]:
        """The call where one of the reads along its footprint lies, counted from 1, and the weight of that read."""

    @abc.abstractmethod
    def most_reads(self, sampler: Sampler) -> int:
        """The largest number of reads along a footprint."""

    @abc.abstractmethod
    def read(self, texture: Texture | SizedTexture, read: Read) -> jax.Array:
        """The values of a read, border color included: S + (C,) of the dtype of the read."""

    @abc.abstractmethod
    def read_texel(self, texture: Texture, read: Read) -> jax.Array:
        """The values of a read of one tap, as a gather returns them."""
