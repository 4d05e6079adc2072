"""Writes whose result is dropped are told: while they are traced at once, elsewhere when the old memory is read."""

import gc
import warnings
import weakref

import jax  # noqa: F401  # of programs below
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import cuda
from jaxtex._checks.dropped import DROPPED

STORE = cuda.ArrayFlags.SurfaceLoadStore
AT = (jnp.arange(2),)


def texture():
    return jt.texture1d(jnp.zeros((4, 1)))


def array(name="int"):
    return cuda.mallocArray(cuda.createChannelDesc(name), 4, 0, STORE)


def parms(target):
    words = cuda.PitchedPtr(np.arange(4, dtype=np.int32), 16, 4, 1)
    return cuda.Memcpy3DParms(srcPtr=words, dstArray=target, extent=cuda.Extent(4, 1, 1))


# Writes, by what is written. They are statements below, because a function that returned them would use them.
WRITES = {
    "surface_write": (texture, "jt.surface_write(old, 1.0, AT)"),
    "surface_add": (texture, "jt.surface_add(old, 1.0, AT)"),
    "surface_min": (texture, "jt.surface_min(old, 1.0, AT)"),
    "surface_max": (texture, "jt.surface_max(old, 1.0, AT)"),
    "surf1Dwrite": (array, "cuda.surf1Dwrite(1, cuda.createSurfaceObject(cuda.ResourceDesc.Array(old)), 4 * AT[0])"),
    "sust_p": (array, "cuda.sust_p(jnp.ones(1, jnp.int32), old, *AT)"),
    "sured_b": (array, "cuda.sured_b(1, old, 4 * AT[0], op='add')"),
    "sured_p": (array, "cuda.sured_p(1, old, *AT, op='add')"),
    "memcpyToArray": (array, "cuda.memcpyToArray(old, np.arange(4, dtype=np.int32))"),
    "memcpy2DToArray": (array, "cuda.memcpy2DToArray(old, 0, 0, np.arange(4, dtype=np.int32), 16, 16, 1)"),
    "memcpyArrayToArray": (array, "cuda.memcpyArrayToArray(old, 0, 0, array(), 0, 0, 16)"),
    "memcpy3D": (array, "cuda.memcpy3D(parms(old))"),
}
READS = {
    texture: ("jt.surface_read(old, AT)", "jt.sample(old, (0.5,))", "jt.fetch(old, AT)"),
    array: (
        "cuda.surf1Dread(old, 4)",
        "cuda.memcpyFromArray(old)",
        "cuda.memcpyFromArray(jnp.zeros(4, jnp.int32), old, 0, 0, 16)",
        "cuda.createTextureObject(cuda.ResourceDesc.Array(old), cuda.TextureDesc())",
    ),
}


def told(program, old):
    """The warnings of statements about `old`, which run as a function does."""
    scope = {}
    exec("def run(old):\n" + "".join(f"    {line}\n" for line in program), globals(), scope)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scope["run"](old)
    return [str(warning.message).partition(";")[0] for warning in caught]


@pytest.mark.parametrize("name", WRITES)
def test_a_dropped_write_is_told(name):
    make, write = WRITES[name]
    for read in READS[make]:
        reader = read.partition("(")[0].rpartition(".")[2]
        said = [f"{reader}: the result of {name} was dropped, and what is read does not hold its values"]
        assert told([write, write, read, read], make()) == said
    assert told([write], make()) == []  # it may be timed

    scope = {}
    exec(f"def run_{name}(old):\n    {write}\n", globals(), scope)
    globals().update(scope)
    assert told([f"jax.eval_shape(run_{name}, old)"], make()) == [
        f"{name}: the result is dropped, and its values with it"
    ]


@pytest.mark.parametrize("name", WRITES)
def test_what_is_kept_is_not_told(name):
    """Bound to a name, overwritten, passed on, returned, looked at, or lost in an error, whatever is read then."""
    make, write = WRITES[name]
    read = READS[make][0]
    for program in (
        [f"new = {write}", read],
        [f"new = {write}", f"new = {write}", "del new", read],
        [f"id({write})", read],
        [f"[{write} for _ in range(2)]", read],
        [f"(lambda: {write})()", read],
        [f"{write} and None", read],
        ["try:", f"    new = {write}; 1 / 0", "except ZeroDivisionError: new = None", read],
        [write, f"new = {write}", read],
        [f"jax.eval_shape(lambda old: {write}, old)", read],
        [f"jax.eval_shape(lambda old: ({write}, old)[1], old)", read],
    ):
        assert told(program, make()) == []


def test_nothing_is_kept_alive():
    for make, write in WRITES.values():
        old = make()
        gone = weakref.ref(old)
        told([write], old)
        assert old in DROPPED
        del old
        gc.collect()
        assert gone() is None
    assert not DROPPED


def test_the_warning_names_the_line_of_the_caller():
    old = texture()
    jt.surface_write(old, 1.0, AT)
    with pytest.warns(UserWarning, match="assign what the write returns") as caught:
        jt.sample(old, (0.5,))
    assert caught[0].filename == __file__
