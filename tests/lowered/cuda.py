"""Calls by CUDA's names: objects, references, and accesses of surfaces."""

import numpy as np

from jaxtex import cuda
from jaxtex.cuda import AddressMode, ArrayFlags, FilterMode, ReadMode, ResourceDesc, SurfaceBoundaryMode, TextureDesc
from tests.compiled.calls import LAYERS, LEVELS, XY, normal, stored, uniform
from tests.lowered.programs import Call

FLOAT2, UCHAR4 = cuda.createChannelDesc("float2"), cuda.createChannelDesc("uchar4")
LINEAR = {"filterMode": FilterMode.Linear, "normalizedCoords": 1}
STORE = ArrayFlags.SurfaceLoadStore
IN_BYTES = np.int32([[-8, 0, 8], [16, 40, 48]]), np.int32([[0, 2, 9], [-1, 5, 3]])
KINDS = {
    "1D": ((7, 0, 0), 0, (7,), XY[:1]),
    "2D": ((7, 6, 0), 0, (6, 7), XY),
    "3D": ((7, 6, 5), 0, (5, 6, 7), tuple(uniform(3, 9, 33))),
    "2DLayered": ((7, 6, 3), ArrayFlags.Layered, (3, 6, 7), (*XY, LAYERS)),
    "Cubemap": ((6, 6, 6), ArrayFlags.Cubemap, (6, 6, 6), tuple(normal(3, 9, 33))),
}


def array(texels, extent, flags=0, desc=FLOAT2):
    return cuda.memcpyToArray(cuda.malloc3DArray(desc, extent, flags), texels)


def texture(name, arithmetic, **options):
    """A read of a texture object over an array."""
    extent, flags, sizes, places = KINDS[name]

    def read(texels, *coords):
        resource = ResourceDesc.Array(array(texels, extent, flags))
        made = cuda.createTextureObject(resource, TextureDesc(**LINEAR, **options), arithmetic=arithmetic)
        return getattr(cuda, f"tex{name}")(made, *coords)

    args = normal(*sizes, 2), *places
    return Call(read, args, tuple(k for k, x in enumerate(args) if x.dtype == np.float32))


def of_bytes(texels, x, y):
    clamp = (AddressMode.Clamp,) * 3
    desc = TextureDesc(addressMode=clamp, readMode=ReadMode.NormalizedFloat, sRGB=1, **LINEAR)
    made = cuda.createTextureObject(
        ResourceDesc.Array(array(texels, (7, 6, 0), ArrayFlags.TextureGather, UCHAR4)), desc
    )
    return cuda.tex2D(made, x, y, T="float4"), cuda.tex2Dgather(made, x, y, 2)


def of_levels(finest, second, x, y, level, side):
    mipmap = cuda.mallocMipmappedArray(FLOAT2, (8, 6, 0), 2)
    for number, texels in enumerate((finest, second)):
        mipmap = cuda.memcpyToArray(mipmap, texels, level=number)
    desc = TextureDesc(maxAnisotropy=4, mipmapFilterMode=FilterMode.Linear, maxMipmapLevelClamp=1.0, **LINEAR)
    made = cuda.createTextureObject(ResourceDesc.MipmappedArray(mipmap), desc)
    return cuda.tex2DLod(made, x, y, level), cuda.tex2DGrad(made, x, y, (side, side), (side / 8, side / 9))


def of_reference(texels, x):
    reference = cuda.TextureReference("float", filterMode=FilterMode.Linear)
    bound = cuda.bindTextureToArray(reference, array(texels, (9, 0, 0), 0, cuda.createChannelDesc("float")))
    return cuda.tex1D(bound, x)


def fetched(memory, index):
    return cuda.tex1Dfetch(cuda.createTextureObject(ResourceDesc.Linear(memory), TextureDesc()), index)


def surface(mode):
    def run(texels, values, x, y):
        made = cuda.createSurfaceObject(ResourceDesc.Array(array(texels, (7, 6, 0), STORE)))
        return cuda.surf2Dread(made, x, y, mode), cuda.surf2Dwrite(values, made, x, y, mode).texels

    return Call(run, (normal(6, 7, 2), normal(2, 3, 2), *IN_BYTES), (0, 1))


CUDA = {
    **{f"tex{name}": texture(name, "hardware") for name in KINDS},
    "tex2D in floats": texture("2D", "float", addressMode=(AddressMode.Mirror,) * 3),
    "bytes": Call(of_bytes, (stored("uint8", 6, 7, 4), *XY)),
    "levels": Call(of_levels, (normal(6, 8, 2), normal(3, 4, 2), *XY, LEVELS, 0.1 * normal(9, 33)), (0, 1, 2, 3)),
    "a reference": Call(of_reference, (normal(9), uniform(1, 300)[0]), (0, 1)),
    "tex1Dfetch": Call(fetched, (normal(50), np.arange(-3, 60, dtype=np.int32)), (0,)),
    **{f"a surface, {mode.name}": surface(mode) for mode in SurfaceBoundaryMode},
}
