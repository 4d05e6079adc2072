"""Reads that follow one another in one program on a CPU: each is computed once, whatever reads its result."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from jaxtex import warp
from jaxtex._jax.barriers import with_materialized
from tests.support import compiling
from tests.support.tolerances import assert_exact

# This option decides which operations share a loop; the others cost time.
AS_USERS = {k: v for k, v in compiling.by_default().items() if k == "xla_cpu_opt_preset"}

# On a GPU kernels are boundaries by themselves.
pytestmark = pytest.mark.usefixtures("on_a_cpu")


def compiled(function, *args):
    return jax.jit(function).lower(*args).compile(compiler_options=AS_USERS)


def assert_grows_as_the_length(program_of):
    """Work that a read repeats of the one before it is more operations in the compiled program."""
    second, third, fourth = (program_of(length).as_text().count(" = ") for length in (2, 3, 4))
    assert 0 < fourth - third <= 1.1 * (third - second), (second, third, fourth)


def moved_by_itself(length, address):
    def run(velocity):
        for _ in range(length):
            velocity = velocity + warp.warp_flow(velocity, velocity, address_mode=address)
        return velocity

    return run


def carried(length, address):
    """Points that move with a field: each read is at points that the one before has found."""
    sampler = jt.Sampler(address_mode=address, normalized_coords=False)

    def run(velocity):
        at = tuple(jnp.broadcast_to(jnp.float32(0.5 + k), (40, 50)) for k in range(velocity.ndim - 1))
        texture = jt.texture2d(velocity) if velocity.ndim == 3 else jt.texture3d(velocity)
        for _ in range(length):
            step = jt.sample(texture, at, sampler)
            at = tuple(c + step[..., k] for k, c in enumerate(at))
        return jnp.stack(at)

    return run


CHAINS = {"moved by itself": moved_by_itself, "carried": carried}
FORMS = {
    "value": lambda f: f,
    "gradient": lambda f: lambda v: jax.vjp(f, v)[1](jnp.ones_like(jax.eval_shape(f, v), jnp.float32))[0],
    "tangent": lambda f: lambda v: jax.jvp(f, (v,), (v,))[1],
    "vmap": lambda f: lambda v: jax.vmap(f)(jnp.stack([v, 2 * v])),
}


def field(*shape):
    return np.random.default_rng(0).normal(size=(*shape, len(shape))).astype(np.float32)


SPACES = {"2D": ((12, 9), "clamp"), "3D": ((6, 5, 7), "border")}


# Each form of both chains, and some in a space where a read has more taps, so that repeated work would show sooner.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("chain", "space", "form"),
    [
        *(("moved by itself", "2D", form) for form in ("value", "gradient", "tangent")),
        *(("carried", "2D", form) for form in ("gradient", "tangent", "vmap")),
        *(("moved by itself", "3D", "vmap"), ("carried", "3D", "value")),
    ],
)
def test_a_program_grows_as_the_number_of_reads(chain, space, form):
    shape, address = SPACES[space]
    velocity = field(*shape)
    assert_grows_as_the_length(lambda length: compiled(FORMS[form](CHAINS[chain](length, address)), velocity))


@pytest.mark.parametrize("form", ["layers", "vmap"])
def test_a_sum_over_planes_keeps_their_reads_and_nothing_more(form):
    """Three reads of a feature map, which a program adds up: their texels are not kept beside their blends."""
    planes, at = np.ones((3, 8, 8, 16), np.float32), tuple(np.linspace(0, 1, 3000, dtype=np.float32).reshape(2, 3, 500))

    def layers(planes, x, y):
        return jt.sample(jt.texture2d_layered(planes), (x, y), layer=jnp.arange(3)[:, None]).sum(0)

    def vmap(planes, x, y):
        return jax.vmap(lambda plane, x, y: jt.sample(jt.texture2d(plane), (x, y)))(planes, x, y).sum(0)

    program = compiled({"layers": layers, "vmap": vmap}[form], planes, *at)
    values = 3 * 500 * 16 * 4
    assert program.memory_analysis().temp_size_in_bytes < 1.5 * values


def test_programs_in_parts_grow_as_the_number_of_reads():
    """A field on each device: nothing is exchanged."""
    devices = jax.devices("cpu")[:2]
    if len(devices) < 2:
        pytest.skip("one device")
    mesh = jax.make_mesh((2,), ("devices",), axis_types=(AxisType.Auto,), devices=devices)
    fields = jax.device_put(np.stack([field(6, 5, 7)] * 2), NamedSharding(mesh, P("devices")))

    def program_of(length):
        program = compiled(jax.vmap(moved_by_itself(length, "border")), fields)
        assert not re.search(r"all-gather|all-reduce|all-to-all|collective-permute", program.as_text())
        return program

    assert_grows_as_the_length(program_of)


@pytest.mark.parametrize("options", [{}, compiling.by_default()], ids=["as tests", "as users"])
def test_no_loop_writes_over_what_it_reads_through_a_call(options):
    """A loop may write over an argument that it reads element by element, but not if it also reads it turned around."""

    def turned(once, array):
        return once[::-1] + once[:, ::-1] + array

    def program(function):
        # Products of matrices are in no loop of their neighbors; the array between them is needed only here.
        lowered = jax.jit(lambda a: jnp.sort(function(a @ a, a @ a) @ a)[3, 2]).lower(array)
        return lowered.compile(compiler_options=options)

    array = np.arange(64, dtype=np.float32).reshape(8, 8) % 7
    apart = program(with_materialized(turned, (0,)))
    assert " call(" in apart.as_text()
    assert_exact(apart(array), program(turned)(array))
