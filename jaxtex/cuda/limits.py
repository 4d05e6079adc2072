"""The largest sizes of textures and surfaces, by compute capability."""

# pyright: strict

from .errors import INVALID_VALUE, CudaError

NEWEST_COMPUTE_CAPABILITY = 12.1

# The largest (width, height, depth or layers), from each compute capability on.
# Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; its archive for older columns.
LIMITS = {
    "1D texture": {2.0: (65536,), 6.0: (131072,)},
    "1D texture from linear memory": {
        2.0: (2**27,),
        6.0: (2**28,),
        6.1: (2**27,),
        7.0: (2**28,),
        7.2: (2**27,),
        7.5: (2**28,),
    },
    "1D layered texture": {2.0: (16384, 0, 2048), 6.0: (32768, 0, 2048)},
    "2D texture": {2.0: (65536, 65535), 3.5: (65536, 65536), 6.0: (131072, 65536)},
    "2D texture from pitched memory": {2.0: (65000, 65000), 5.0: (65536, 65536), 6.0: (131072, 65000)},
    "2D texture with gather": {2.0: (16384, 16384), 6.0: (32768, 32768)},
    "2D layered texture": {2.0: (16384, 16384, 2048), 6.0: (32768, 32768, 2048)},
    "3D texture": {2.0: (2048,) * 3, 3.0: (4096,) * 3, 6.0: (16384,) * 3},
    "cubemap": {2.0: (16384, 16384, 6), 6.0: (32768, 32768, 6)},
    # The guide counts faces as layers: 2046 of them are 341 cubemaps.
    "layered cubemap": {2.0: (16384, 16384, 2046), 6.0: (32768, 32768, 2046)},
    "1D surface": {2.0: (65536,), 5.0: (16384,), 6.0: (32768,)},
    "1D layered surface": {2.0: (65536, 0, 2048), 5.0: (16384, 0, 2048), 6.0: (32768, 0, 2048)},
    "2D surface": {2.0: (65536, 32768), 5.0: (65536, 65536), 6.0: (131072, 65536)},
    "2D layered surface": {2.0: (65536, 32768, 2048), 5.0: (16384, 16384, 2048), 6.0: (32768, 32768, 2048)},
    "3D surface": {2.0: (65536, 32768, 2048), 5.0: (4096,) * 3, 6.0: (16384,) * 3},
    "cubemap surface": {2.0: (32768, 32768, 6), 5.0: (16384, 16384, 6), 6.0: (32768, 32768, 6)},
    "layered cubemap surface": {2.0: (32768, 32768, 2046), 5.0: (16384, 16384, 2046), 6.0: (32768, 32768, 2046)},
}


def check_limits(function: str, what: str, sizes: tuple[int, ...], compute_capability: object) -> None:
    """Refuses sizes, in x, y, z order, above the limits of a compute capability (1). `what` is a row of `LIMITS`."""
    limit = limit_of(function, what, compute_capability)
    if any(size > most for size, most in zip(sizes, limit)):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: the {what} has the size {sizes}, expected at most {limit} for compute capability "
            f"{compute_capability}; split it into parts.",
        )


def limit_of(function: str, what: str, compute_capability: object) -> tuple[int, ...]:
    """The limits of a compute capability. `what` is a row of `LIMITS`."""
    table = LIMITS[what]
    if not isinstance(compute_capability, int | float) or compute_capability < min(table):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: compute_capability is {compute_capability!r}, expected a number such as 9.0, at least "
            f"{min(table)}.",
        )
    return table[max(version for version in table if version <= compute_capability)]
