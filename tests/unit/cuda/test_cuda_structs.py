"""CUDA's structs: zeroed and filled in by field, compared and hashed, arguments and results of transformations."""

import copy
import dataclasses
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtex import cuda
from jaxtex.cuda import AddressMode, Extent, FilterMode, Memcpy3DParms, PitchedPtr, ResourceDesc, TextureDesc
from tests.support.tolerances import assert_exact
from tests.unit.cuda.test_cuda import compiled, traced

FLOAT = cuda.createChannelDesc("float")
ARRAY = jax.jit(lambda: cuda.memcpyToArray(cuda.mallocArray(FLOAT, 2, 2), np.float32([[1, 2], [3, 4]])))()
# What makes a struct, and a field with another value than the default.
STRUCTS = {
    "ChannelFormatDesc": (cuda.ChannelFormatDesc, "x", 8),
    "ResourceViewDesc": (cuda.ResourceViewDesc, "width", 8),
    "TextureDesc": (TextureDesc, "normalizedCoords", 1),
    "TextureReference": (lambda: cuda.TextureReference("float"), "normalized", 1),
    "SurfaceReference": (cuda.SurfaceReference, "Type", 2),
    "ResourceDesc": (ResourceDesc, "resType", 2),
    "Memcpy3DParms": (Memcpy3DParms, "extent", Extent(1, 1, 1)),
    "PitchedPtr": (PitchedPtr, "pitch", 8),
    "Pos": (cuda.Pos, "x", 8),
    "Extent": (Extent, "width", 8),
}


def test_structs_are_values_and_arguments():
    """Compared by value, results, and static: what is hashed changes no more, as programs are found by it."""
    traces, (makes, fields, values) = [], zip(*STRUCTS.values())
    make_all = lambda: tuple(make() for make in makes)
    fields_of = lambda structs: tuple(map(getattr, structs, fields))
    traced = lambda structs: traces.append(fields_of(structs)) or structs
    dynamic, static = jax.jit(traced), jax.jit(lambda structs: traced(structs) and 1, static_argnums=0)
    for _ in range(2):
        others = make_all()
        for struct, field, value in zip(others, fields, values, strict=True):
            setattr(struct, field, value)
        assert jax.tree.map(float, dynamic(make_all())) == make_all()
        assert jax.tree.map(float, dynamic(others)) == others
        assert int(static(make_all())) == int(static(others)) == 1
    assert traces == [fields_of(make_all()), values] * 2
    for (make, field, value), used, result in zip(STRUCTS.values(), others, dynamic(others), strict=True):
        other = dataclasses.replace(make(), **{field: value})
        assert make() == make() != other
        assert hash(make()) == hash(make())
        assert len({make(), make(), other}) == 2
        assert make() != "a string"
        assert other == pickle.loads(pickle.dumps(other)) == copy.deepcopy(other)
        leaves, tree = jax.tree.flatten(make())
        assert jax.tree.unflatten(tree, leaves) == make()
        assert jax.tree.structure(used) != tree
        assert jax.tree.map(lambda _: None, used) is not None
        with pytest.raises(AttributeError, match=r"dataclasses\.replace"):
            setattr(used, field, value)
        for struct in (make(), result, dataclasses.replace(used)):
            jax.tree.structure(struct)
            setattr(struct, field, value)


def test_values_and_structs_print_one_line():
    """With the shapes of arrays, and without their numbers."""
    make = lambda: cuda.mallocMipmappedArray(FLOAT, (4, 4, 0), 2, cuda.ArrayFlags.SurfaceLoadStore)
    mipmap, zeros = jax.jit(lambda: (make(), jnp.zeros((3, 2))))()
    assert repr(ARRAY) == "Array(extent=(2, 2, 0), desc=float, flags=Default)"
    assert repr(mipmap) == "MipmappedArray(extent=(4, 4, 0), levels=2, desc=float, flags=SurfaceLoadStore)"
    surface = cuda.createSurfaceObject(ResourceDesc.Array(cuda.getMipmappedArrayLevel(mipmap, 1)))
    assert repr(surface) == "SurfaceObject(array=Array(extent=(2, 2, 0), desc=float, flags=SurfaceLoadStore))"
    assert repr(PitchedPtr(zeros, 8)) == "PitchedPtr(ptr=float32[3,2], pitch=8, xsize=0, ysize=0)"
    texture = cuda.createTextureObject(ResourceDesc.Array(ARRAY), TextureDesc())
    bound = cuda.bindTextureToArray(cuda.TextureReference("float", 2), ARRAY)
    for value in (texture, bound, TextureDesc(borderColor=zeros), ResourceDesc.Linear(zeros)):
        assert "\n" not in repr(value)
        assert "0., 0." not in repr(value)
    assert "addressMode=(AddressMode.Wrap, AddressMode.Wrap, AddressMode.Wrap)" in repr(TextureDesc())


def test_arrays_in_structs_are_compared_by_identity():
    color = jnp.arange(4.0)
    for first, second in (
        (TextureDesc(borderColor=color), TextureDesc(borderColor=jnp.arange(4.0))),
        (TextureDesc(borderColor=np.zeros(4)), TextureDesc(borderColor=np.zeros(4))),
        (PitchedPtr(color, 16, 4, 1), PitchedPtr(jnp.arange(4.0), 16, 4, 1)),
        (ResourceDesc.Linear(color), ResourceDesc.Linear(jnp.arange(4.0))),
        (ResourceDesc.Array(ARRAY), ResourceDesc.Array(jax.tree.map(jnp.copy, ARRAY))),
    ):
        assert first != second
        assert first == dataclasses.replace(first)
        assert hash(first) == hash(dataclasses.replace(first))

    @jax.jit
    def compares(color):
        desc = TextureDesc(borderColor=(color, 0.0, 0.0, 1.0))
        return float(desc == dataclasses.replace(desc)) + 2 * (desc == TextureDesc()) + 0 * bool(hash(desc))

    assert float(compares(1.0)) == 1


def test_border_colors_pass_through_transformations():
    texture = lambda desc: cuda.createTextureObject(ResourceDesc.Array(ARRAY), desc)
    read = lambda desc: cuda.tex2D(texture(desc), -5.0, 0.5)
    desc = TextureDesc(addressMode=AddressMode.Border, borderColor=jax.device_put(np.float32([7, 0, 0, 0])))

    @jax.jit
    def run(desc):
        doubled = jax.tree.map(lambda c: 2 * c, desc)
        return read(desc), doubled, read(doubled), jax.grad(read)(desc)

    first, result, second, gradient = run(desc)
    assert (float(first), float(second)) == (7, 14)
    assert result.addressMode == desc.addressMode
    desc.borderColor = (3.0, 0.0, 0.0, 0.0)
    desc.borderColor[0] = 9.0
    assert float(jax.jit(lambda: read(desc))()) == 9
    assert np.asarray(gradient.borderColor).tolist() == [1, 0, 0, 0]


@compiled(np.arange(8, dtype=np.float32))
def test_a_zeroed_resource_is_filled_in(memory):
    resource = ResourceDesc()
    resource.resType = cuda.ResourceType.Array
    resource.res.array.array = ARRAY
    desc = TextureDesc()
    desc.addressMode[0] = AddressMode.Clamp
    desc.addressMode[1] = AddressMode.Clamp
    desc.filterMode = FilterMode.Linear
    blended = cuda.tex2D(cuda.createTextureObject(resource, desc), 1.0, 1.0)
    assert resource.res.array.array is ARRAY
    assert desc == TextureDesc(addressMode=(1, 1, 0), filterMode=1)
    resource = ResourceDesc()
    resource.resType = cuda.ResourceType.Linear
    resource.res.linear.devPtr = memory
    resource.res.linear.desc.f = cuda.ChannelFormatKind.Float
    resource.res.linear.desc.x = 32
    resource.res.linear.sizeInBytes = np.int64(4 * 4)
    linear = cuda.createTextureObject(resource, TextureDesc()).texture.texels
    rows = cuda.mallocPitch(8, 2)
    resource = ResourceDesc()
    resource.resType = cuda.ResourceType.Pitch2D
    member = resource.res.pitch2D
    member.devPtr = cuda.memcpy2D(rows.ptr, rows.pitch, ARRAY.texels, 8, 8, 2)
    member.desc, member.width, member.height, member.pitchInBytes = FLOAT, 2, 2, rows.pitch
    pitched = cuda.createTextureObject(resource, TextureDesc()).texture.texels
    mipmap = cuda.mallocMipmappedArray(FLOAT, (4, 4, 0), 2)
    resource = ResourceDesc()
    resource.resType = cuda.ResourceType.MipmappedArray
    resource.res.mipmap.mipmap = mipmap
    assert cuda.createTextureObject(resource, TextureDesc(normalizedCoords=1)).texture.num_levels == 2
    with pytest.raises(AttributeError, match="expected one of array, mipmap, linear, pitch2D"):
        resource.res.pitch2d  # noqa: B018, a misspelling
    with pytest.raises(AttributeError, match="expected one of devPtr"):
        resource.res.linear.ptr = 0
    texels = (linear[:, 0], np.arange(4, dtype=np.float32)), (pitched, np.asarray(ARRAY.texels))
    return (blended, np.float32(2.5)), *texels


def test_zeroed_copies_formats_and_views_are_filled_in():
    parms = Memcpy3DParms()
    parms.srcPtr = cuda.make_cudaPitchedPtr(np.arange(8, dtype=np.float32), 8, 2, 2)
    parms.dstArray = cuda.malloc3DArray(FLOAT, cuda.make_cudaExtent(2, 2, 2))
    parms.extent = cuda.make_cudaExtent(2, 2, 2)
    parms.kind = cuda.MemcpyKind.HostToDevice
    volume = jax.jit(cuda.memcpy3D)(parms)
    assert_exact(volume.texels, np.arange(8, dtype=np.float32).reshape(2, 2, 2, 1))
    parms = Memcpy3DParms()
    parms.srcArray, parms.srcPos.z = volume, 1
    parms.dstPtr.ptr, parms.dstPtr.pitch, parms.dstPtr.ysize = np.zeros(4, np.float32), 8, 2
    parms.extent.width, parms.extent.height, parms.extent.depth = 2, 2, 1
    gradient_of = jax.grad(lambda parms: cuda.memcpy3D(parms).sum())
    copied, gradient = jax.jit(lambda parms: (cuda.memcpy3D(parms), gradient_of(parms)))(parms)
    assert_exact(copied, np.float32([4, 5, 6, 7]))
    assert_exact(gradient.srcArray.texels, np.repeat(np.float32([0, 1]), 4).reshape(2, 2, 2, 1))
    assert_exact(gradient.dstPtr.ptr, np.zeros(4, np.float32))
    assert gradient.extent == (2, 2, 1)
    desc = cuda.ChannelFormatDesc()
    desc.x = desc.y = 16
    desc.f = cuda.ChannelFormatKind.Float
    assert desc == cuda.createChannelDesc("half2")
    view = cuda.ResourceViewDesc()
    view.format, view.width, view.height = cuda.ResourceViewFormat.UnsignedInt1, 2, 2
    assert str(cuda.createTextureObject(ResourceDesc.Array(ARRAY), TextureDesc(), view).desc) == "uint"


@traced
def test_arrays_keep_their_format_and_their_extent():
    desc, extent = cuda.createChannelDesc("float"), Extent(2, 2, 0)
    array = cuda.malloc3DArray(desc, extent)
    desc.x, extent.width = 8, 5
    assert str(array.desc) == "float"
    assert array.extent == (2, 2, 0)
    for struct, field in ((array.desc, "x"), (array.extent, "width")):
        with pytest.raises(AttributeError, match=r"dataclasses\.replace"):
            setattr(struct, field, 1)
    texture_desc = TextureDesc()
    texture = cuda.createTextureObject(ResourceDesc.Array(array), texture_desc)
    texture_desc.filterMode = FilterMode.Linear
    assert cuda.getTextureObjectTextureDesc(texture) == TextureDesc()


def test_vectors_of_structs_are_compared_with_tuples():
    desc = TextureDesc(addressMode=[AddressMode.Mirror])
    assert desc.addressMode == (2, 0, 0)
    assert tuple(desc.addressMode[1:]) == (0, 0)
    assert list(Extent(4, 3)) == [4, 3, 0]
    assert Extent(4, 3)[1:] == (3, 0)
    assert len(cuda.Pos()) == 3
    ptr, pitch, *_ = cuda.mallocPitch(8, 2)
    assert ptr.shape == (2, pitch)


def test_fields_that_do_not_exist_are_refused():
    """Where they are assigned, read or passed, in structs and in what they hold, with the name that was meant."""
    for make, field, _ in STRUCTS.values():
        wrong = field.swapcase()
        for act in (
            lambda struct, wrong=wrong: setattr(struct, wrong, 1),
            lambda struct, wrong=wrong: getattr(struct, wrong),
        ):
            with pytest.raises(AttributeError, match=rf"there is no field '{wrong}', .*\. Did you mean {field}\?$"):
                act(make())
        with pytest.raises(TypeError, match=f"there is no argument '{wrong}'; pass {field}"):
            type(make())(**{wrong: 1})
        with pytest.raises(TypeError, match=f"there is no argument '{wrong}'"):
            dataclasses.replace(make(), **{wrong: 1})
    resource, parms = ResourceDesc(), Memcpy3DParms()
    bound = cuda.bindTextureToArray(cuda.TextureReference("float", 2), ARRAY)
    for holder, name, said in (
        (resource, "Res", "Did you mean res?"),
        (resource.res, "Array", "Did you mean array?"),
        (resource.res, "Pitch2D", "Did you mean pitch2D?"),
        (resource.res.array, "Array", "Did you mean array?"),
        (resource.res.linear, "sizeInByte", "Did you mean sizeInBytes?"),
        (parms.dstPtr, "ysizes", "Did you mean ysize?"),
        (parms.extent, "widht", "Did you mean width?"),
        (bound, "filterMod", "Did you mean filterMode?"),
        (cuda.DeviceProp(), "maxTexture2", "Did you mean maxTexture2D?"),
    ):
        for act in (getattr, lambda holder, name: setattr(holder, name, 1)):
            if name == "Res" and act is not getattr:
                continue  # `res` itself cannot be assigned
            with pytest.raises(AttributeError) as raised:
                act(holder, name)
            assert str(raised.value).endswith(said)
    with pytest.raises(AttributeError, match=r"array is a struct; assign to its fields, res\.array\.array\.$"):
        resource.res.array = ARRAY
    with pytest.raises(AttributeError, match="no field 'x'; assign to its elements"):
        TextureDesc().borderColor.x = 1.0
    assert resource == ResourceDesc()
    for struct in (resource, TextureDesc(), bound, parms):
        assert not hasattr(struct, "__jax_array__")
        assert jax.tree.structure(copy.copy(struct)) == jax.tree.structure(struct)
