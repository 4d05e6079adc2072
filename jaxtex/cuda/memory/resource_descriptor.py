"""`ResourceDesc`: the memory that a texture or a surface is made of, as CUDA describes it."""

from typing import TYPE_CHECKING, Any

from jax.typing import ArrayLike

from ..enums import ResourceType
from ..structs import Struct, no_field, struct
from . import arrays
from .channel_formats import ChannelFormatDesc

UNION = "cudaResourceDesc.res"
# The members of the union in CUDA's struct, and the fields here that each consists of.
UNION_MEMBERS = {
    "array": {"array": "memory"},
    "mipmap": {"mipmap": "memory"},
    "linear": {"devPtr": "memory", "desc": "desc", "sizeInBytes": "sizeInBytes"},
    "pitch2D": {
        "devPtr": "memory",
        "desc": "desc",
        "width": "width",
        "height": "height",
        "pitchInBytes": "pitchInBytes",
    },
}


@struct("memory")
class ResourceDesc(Struct):
    """The memory that a texture or a surface is made of: `cudaResourceDesc`.

    The constructors `Array`, `MipmappedArray`, `Linear` and `Pitch2D` each describe one kind of memory.
    ``ResourceDesc()`` is a zeroed struct. Its fields may be assigned; those of CUDA's union are under `res`. It is a
    pytree whose only child is `memory`; the other fields are static.

    Attributes:
        memory: an `Array`, a `MipmappedArray`, or a plain JAX array.
        resType: the `ResourceType`.
        desc: the format of plain memory. Arrays have their own format.
        sizeInBytes: the size of linear memory; ``None`` is all of it.
        width, height: the size of pitched memory in elements; ``None`` is all of it.
        pitchInBytes: the bytes from row to row of pitched memory; ``None`` if its shape gives the rows.
        flags: 0, as CUDA requires.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> cuda.ResourceDesc.Linear(jnp.arange(8), cuda.createChannelDesc("int")).resType.name
        'Linear'
        >>> resource = cuda.ResourceDesc()
        >>> resource.resType = cuda.ResourceType.Linear
        >>> resource.res.linear.devPtr = jnp.arange(8)
        >>> resource.res.linear.desc = cuda.createChannelDesc("int")
        >>> resource.res.linear.sizeInBytes = 8 * 4
    """

    memory: arrays.Array | arrays.MipmappedArray | ArrayLike | None = None
    resType: ResourceType | int = ResourceType.Array
    desc: ChannelFormatDesc | None = None
    sizeInBytes: int | None = None
    width: int | None = None
    height: int | None = None
    pitchInBytes: int | None = None
    flags: int = 0

    @property
    def res(self) -> "ResourceUnion":
        """CUDA's names of the fields: ``res.array.array``, ``res.mipmap.mipmap``, ``res.linear.devPtr`` and so on."""
        return ResourceUnion(self)

    @classmethod
    def Array(cls, array: arrays.Array) -> "ResourceDesc":
        """Describes an array of any kind: `cudaResourceTypeArray`.

        Args:
            array: the `Array`.
        """
        return cls(array, ResourceType.Array)

    @classmethod
    def MipmappedArray(cls, mipmap: arrays.MipmappedArray) -> "ResourceDesc":
        """Describes an array with mip levels: `cudaResourceTypeMipmappedArray`.

        Args:
            mipmap: the `MipmappedArray`.
        """
        return cls(mipmap, ResourceType.MipmappedArray)

    @classmethod
    def Linear(
        cls, devPtr: ArrayLike, desc: ChannelFormatDesc | None = None, sizeInBytes: int | None = None
    ) -> "ResourceDesc":
        """Describes linear memory, which only `tex1Dfetch` reads: `cudaResourceTypeLinear`.

        Args:
            devPtr: an array of the format's dtype, of shape (N,) for one channel, (N, C) or (N * C,) for C channels.
                Bytes, an array of uint8, and doubles, for formats of 32-bit integers, are reinterpreted.
            desc: the format. The default has the dtype of the array, and one channel or the C of (N, C).
            sizeInBytes: the number of bytes from the start that belong to the texture, by default all. The width of the
                texture is this number divided by the size of a texel.
        """
        return cls(devPtr, ResourceType.Linear, desc, sizeInBytes)

    @classmethod
    def Pitch2D(
        cls,
        devPtr: ArrayLike,
        desc: ChannelFormatDesc | None = None,
        width: int | None = None,
        height: int | None = None,
        pitchInBytes: int | None = None,
    ) -> "ResourceDesc":
        """Describes rows in linear memory, which are read as a 2D texture: `cudaResourceTypePitch2D`.

        Args:
            devPtr: an array of the format's dtype, of shape (H, W) for one channel, (H, W, C) or (H, W * C) for C
                channels. Its rows take the place of a pitch.
            desc: the format. The default has the dtype of the array, and one channel or the C of (H, W, C).
            width, height: how many elements of a row, and how many rows, belong to the texture, by default all.
            pitchInBytes: if given, `devPtr` is memory of any dtype, and row r starts at byte ``r * pitchInBytes``, as
                in `mallocPitch`. It must be a multiple of 32, and `desc`, `width` and `height` must be given too.
        """
        return cls(devPtr, ResourceType.Pitch2D, desc, width=width, height=height, pitchInBytes=pitchInBytes)


class ResourceUnion:
    """The union ``res`` of `ResourceDesc`, with the members ``array``, ``mipmap``, ``linear`` and ``pitch2D``."""

    array: "UnionMember"
    mipmap: "UnionMember"
    linear: "UnionMember"
    pitch2D: "UnionMember"

    def __init__(self, resource: ResourceDesc):
        vars(self).update(_resource=resource)

    if not TYPE_CHECKING:  # checkers of types know the members

        def __getattr__(self, name):
            return UnionMember(self._resource, name, field_of(UNION_MEMBERS, UNION, name))

        def __setattr__(self, name, value):
            fields = field_of(UNION_MEMBERS, UNION, name)
            raise AttributeError(
                f"{UNION}: {name} is a struct; assign to its fields, {', '.join(f'res.{name}.{f}' for f in fields)}."
            )


class UnionMember:
    """A struct in the union, as names of fields of `ResourceDesc`."""

    def __init__(self, resource: ResourceDesc, member: str, fields: dict[str, str]):
        vars(self).update(_resource=resource, _member=member, _fields=fields)

    def __getattr__(self, name: str) -> Any:
        field = field_of(self._fields, f"{UNION}.{self._member}", name)
        if field == "desc" and self._resource.desc is None:  # zeroed, so that its fields may be assigned
            self._resource.desc = ChannelFormatDesc()
        return getattr(self._resource, field)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._resource, field_of(self._fields, f"{UNION}.{self._member}", name), value)


def field_of(fields: dict[str, Any], struct: str, name: str) -> Any:
    """The field of a CUDA name."""
    if name not in fields:
        raise no_field(struct, name, fields)
    return fields[name]
