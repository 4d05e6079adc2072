"""What a driver is asked for when textures are bound and dropped, by a driver that notes it."""

import contextlib
import dataclasses
import gc
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._unit import driver, objects
from tests.recorded.block_sets import SIZES, image_blocks
from tests.support.fake_driver import devices_with_units
from tests.support.tolerances import named

HARDWARE = jt.Sampler(arithmetic="hardware")
IMAGE = np.arange(4 * 6 * 2, dtype=np.float32).reshape(4, 6, 2)
OUT_OF_MEMORY = driver.DriverError("no memory", driver.OUT_OF_MEMORY)

# The driver reads memory of the host.
pytestmark = pytest.mark.usefixtures("on_a_cpu")


@pytest.fixture
def units(on_a_cpu):
    """The driver, and the slots of the first device."""
    with devices_with_units() as (fake, slots_of):
        yield fake, slots_of(jax.devices("cpu")[0])
        gc.collect()


@pytest.fixture
def texture(on_a_cpu):
    return jt.texture2d(jnp.asarray(IMAGE))


def settled(slots):
    """Waits for what is gone."""
    gc.collect()
    slots.wait()


def bound_objects(fake):
    """The number of objects, without those for handles of what is gone."""
    return sum(not is_other(made) for made in [*fake.objects.values()])


def is_other(made):
    """Whether an object is for handles of what is gone: no sampler has this number."""
    return made.descriptor.max_anisotropy == 0


def sampler(**options):
    return dataclasses.replace(HARDWARE, **options)


def texels(*shape, dtype=np.float32):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


WRAP, CLAMP, MIRROR, BORDER = range(4)
INTEGER, NORMALIZED, SRGB, SEAMLESS = 0x01, 0x02, 0x10, 0x40
LAYERED, CUBEMAP, GATHERED = 0x01, 0x04, 0x08
FRACTION = {"read_mode": "normalized_float"}
ONE, HALF = (int(np.float32(x).view(np.uint32)) for x in (1.0, 0.5))
# What a sampler and the object of a chain say alike.
LEVELS = {"mipmap_level_bias": -0.5, "min_mipmap_level_clamp": 0.25, "max_mipmap_level_clamp": 1.5, "max_anisotropy": 8}
# Of each texture: what is bound, then of the array its width, height, depth, format, channels and flags, and the bytes
# of a row, rows and slices of each level; of the object what differs from a linear, clamped read of elements.
TABLE = {
    "1d": ((jt.texture1d, texels(7, 1)), (7, 0, 0, 0x20, 1, 0), [(28, 1, 1)], {}),
    "2d": (
        (jt.texture2d, texels(4, 6, 2), {"address_mode": ("wrap", "mirror")}),
        (6, 4, 0, 0x20, 2, GATHERED),
        [(48, 4, 1)],
        {"address_modes": [WRAP, MIRROR, CLAMP]},
    ),
    "2d, three channels": ((jt.texture2d, texels(4, 6, 3)), (6, 4, 0, 0x20, 4, GATHERED), [(96, 4, 1)], {}),
    "3d": (
        (jt.texture3d, texels(2, 4, 6, 1, dtype=np.float16), {"address_mode": ("clamp", "border", "wrap")}),
        (6, 4, 2, 0x10, 1, 0),
        [(12, 4, 2)],
        {"address_modes": [CLAMP, BORDER, WRAP]},
    ),
    "1d_layered": ((jt.texture1d_layered, texels(3, 6, 4)), (6, 0, 3, 0x20, 4, LAYERED), [(96, 1, 3)], {}),
    "2d_layered": ((jt.texture2d_layered, texels(3, 4, 6, 1)), (6, 4, 3, 0x20, 1, LAYERED), [(24, 4, 3)], {}),
    "cubemap": (
        (jt.cubemap, texels(6, 4, 4, 1), {"normalized_coords": False}),
        (4, 4, 6, 0x20, 1, CUBEMAP),
        [(16, 4, 6)],
        {"flags": INTEGER | NORMALIZED | SEAMLESS},
    ),
    "cubemap_layered": (
        (jt.cubemap_layered, texels(2, 6, 4, 4, 1), {"seamless_cubemap": False}),
        (4, 4, 12, 0x20, 1, CUBEMAP | LAYERED),
        [(16, 4, 12)],
        {},
    ),
    "chain": (
        (jt.texture2d, (texels(4, 7, 1), texels(2, 3, 1), texels(1, 1, 1)), {"mipmap_filter_mode": "linear", **LEVELS}),
        (7, 4, 0, 0x20, 1, GATHERED),
        [(28, 4, 1), (12, 2, 1), (4, 1, 1)],
        {"mipmap_filter_mode": 1, **LEVELS},
    ),
    "codes of sRGB": (
        (jt.texture2d, texels(4, 6, 4, dtype=np.uint8), {**FRACTION, "srgb": True, "address_mode": "border"}, 0.5),
        (6, 4, 0, 0x01, 4, GATHERED),
        [(24, 4, 1)],
        {"flags": NORMALIZED | SRGB, "address_modes": [BORDER, BORDER, CLAMP], "border_color": [HALF] * 4},
    ),
    "integers": (
        (
            jt.texture2d,
            texels(4, 6, 2, dtype=np.int16),
            {"filter_mode": "point", "address_mode": "border", "normalized_coords": False},
            np.int16([-2, 5]),
        ),
        (6, 4, 0, 0x09, 2, GATHERED),
        [(24, 4, 1)],
        {
            "filter_mode": 0,
            "flags": INTEGER,
            "address_modes": [BORDER, BORDER, CLAMP],
            "border_color": [2**32 - 2, 5, 0, 0],
        },
    ),
    "larger than what is gathered from": (
        (jt.texture2d, texels(1, 32769, 1, dtype=np.uint8), FRACTION, 1.0),
        (32769, 1, 0, 0x01, 1, 0),
        [(32769, 1, 1)],
        {"flags": NORMALIZED, "border_color": [ONE, 0, 0, 0]},
    ),
}
USUAL = {
    "address_modes": [CLAMP] * 3,
    "filter_mode": 1,
    "flags": INTEGER | NORMALIZED,
    "max_anisotropy": 1,
    "mipmap_filter_mode": 0,
    "mipmap_level_bias": 0.0,
    "min_mipmap_level_clamp": 0.0,
    "border_color": [0] * 4,
    "reserved": [0] * 12,
}


def fields(struct):
    values = {name: getattr(struct, name) for name, _ in struct._fields_}
    return {name: [*value] if hasattr(value, "__len__") else value for name, value in values.items()}


def test_what_the_driver_is_told_of_a_texture(units):
    fake, _ = units
    for name, ((make, levels, *more), array, rows, expected) in TABLE.items():
        options, color = [*more, {}, None][:2] if len(more) != 1 else (more[0], None)
        bound = jt.unit.bind(make(levels, border_color=color), sampler(**options))
        found, stored = fake.read(bound.handle)
        with named(name):
            assert (*fields(stored.descriptor).values(),) == array
            assert [copied for copied, _ in stored.copies.values()] == rows
            assert stored.num_levels == found.num_levels == (len(rows) if len(rows) > 1 else 0)
            if "cube" in name and options.get("seamless_cubemap", True):
                expected = {"flags": INTEGER | NORMALIZED | SEAMLESS} | expected
            told = fields(found.descriptor)
            assert told.pop("max_mipmap_level_clamp") == expected.get("max_mipmap_level_clamp", 1000.0)
            assert told == {k: v for k, v in (USUAL | expected).items() if k != "max_mipmap_level_clamp"}
            whole = [np.asarray(a) for a in (levels if isinstance(levels, tuple) else (levels,))]
            if whole[0].shape[-1] == 3:
                whole = [np.concatenate([a, np.zeros_like(a[..., :1])], -1) for a in whole]
            assert [data for _, data in stored.copies.values()] == [a.tobytes() for a in whole]


def test_what_the_driver_is_told_of_blocks(units):
    """Formats, blocks as they are stored, and the shape and dtype of texels that nobody decodes."""
    fake, _ = units
    codes = {"bc1": 0x91, "bc2": 0x93, "bc3": 0x95, "bc4": 0x97, "bc4_signed": 0x98, "bc5": 0x99, "bc5_signed": 0x9A}
    codes |= {"bc6h": 0x9B, "bc6h_signed": 0x9C, "bc7": 0x9D}
    srgb = sampler(**FRACTION, srgb=True)
    for name, size in SIZES.items():
        blocks = image_blocks(name)
        decoded = jax.eval_shape(lambda b, name=name: jt.block_compressed(b, name, (61, 62)), blocks)
        bound = jt.unit.bind_compressed(blocks, name, (61, 62), border_color=0.25)
        found, stored = fake.read(bound.handle)
        with named(name):
            assert (bound.texels, bound.shape, bound.dtype) == (None, decoded.shape, decoded.dtype)
            assert (bound.num_channels, bound.num_levels) == (decoded.num_channels, 1)
            assert (*fields(stored.descriptor).values(),) == (62, 61, 0, codes[name], decoded.num_channels, 0)
            assert stored.copies == {0: ((16 * size, 16, 1), blocks.tobytes())}
            is_float = decoded.dtype == np.float16
            assert found.descriptor.flags == NORMALIZED | is_float * INTEGER
            quarter = int(np.float32(0.25).view(np.uint32))
            assert [*found.descriptor.border_color] == [*[quarter] * decoded.num_channels, 0, 0, 0][:4]
            if name in driver.WITH_SRGB:
                found, stored = fake.read(jt.unit.bind_compressed(blocks, name, (64, 64), srgb).handle)
                assert stored.descriptor.format == codes[name] + 1
                assert found.descriptor.flags == NORMALIZED | SRGB


def test_what_the_driver_is_told_of_levels_of_blocks(units):
    """A small level takes whole blocks."""
    fake, _ = units
    given = image_blocks("bc1")
    levels, start = [], 0
    for count in (3 * 2 * 2, 1 * 1 * 2, 1 * 1 * 2):
        levels.append(given[start : start + count])
        start += count
    bound = jt.unit.bind_compressed(levels, "bc1", (2, 9, 5), kind="2d_layered")
    found, stored = fake.read(bound.handle)
    assert bound.num_levels == found.num_levels == 3
    assert (*fields(stored.descriptor).values(),) == (5, 9, 2, 0x91, 4, LAYERED)
    assert [sizes for sizes, _ in stored.copies.values()] == [(16, 3, 2), (8, 1, 2), (8, 1, 2)]
    assert [data for _, data in stored.copies.values()] == [level.tobytes() for level in levels]


def test_an_object_lives_as_long_as_an_array_names_it(units, texture):
    fake, slots = units
    first, second = (jt.unit.bind(texture, HARDWARE) for _ in range(2))
    assert bound_objects(fake) == 2
    assert fake.read(first.handle) != fake.read(second.handle)
    # The texture that a program returns, a state of a loop, and a handle that was computed.
    passed = jax.jit(lambda t: t)(first)
    turn = lambda t, _: (t, jt.sample(t, (0.5, 0.5)))
    looped, _ = jax.jit(lambda t: jax.lax.scan(turn, t, length=3))(second)
    expected = fake.read(first.handle), fake.read(second.handle)
    copied = dataclasses.replace(first, handle=passed.handle ^ jnp.uint32(0))
    del first, second, passed
    settled(slots)
    assert (fake.read(copied.handle), fake.read(looped.handle)) == expected
    assert fake.count("destroy_object") == 0
    # And a copy of a copy, twice over.
    for _ in range(2):
        copied = jax.jit(lambda t: dataclasses.replace(t, handle=t.handle | 0))(copied)
        settled(slots)
    assert fake.read(copied.handle) == expected[0]
    del copied
    settled(slots)
    assert (bound_objects(fake), fake.count("destroy_object"), fake.count("destroy_array")) == (1, 1, 1)
    del looped
    settled(slots)
    settled(slots)
    assert (bound_objects(fake), fake.count("destroy_object"), fake.count("destroy_array")) == (0, 2, 2)


def test_a_donated_handle_is_one_of_its_copy(units, texture):
    fake, slots = units
    state = jt.unit.bind(texture, HARDWARE, keep_texels=False)
    expected = fake.read(state.handle)
    turn = jax.jit(lambda t: dataclasses.replace(t, handle=t.handle ^ jnp.uint32(0)), donate_argnums=0)
    for _ in range(3):
        state = turn(state)
        settled(slots)
        assert fake.read(state.handle) == expected
    del state
    settled(slots)
    assert bound_objects(fake) == 0


def test_what_is_donated_just_now_keeps_its_object(units, texture):
    """Between the call, which deletes the array, and its result, no array holds the handle."""
    fake, slots = units
    first = jt.unit.bind(texture, HARDWARE, keep_texels=False)
    expected, number = fake.read(first.handle), np.array(first.handle)
    second = jax.jit(lambda t: dataclasses.replace(t, handle=t.handle ^ jnp.uint32(0)))(first)
    second.handle.delete()  # as a call does to which it is donated
    del first
    settled(slots)
    third = dataclasses.replace(second, handle=jax.device_put(number.copy(), slots.device))
    del second
    settled(slots)
    assert fake.read(third.handle) == expected
    assert not slots.unseen
    del third
    settled(slots)
    assert (bound_objects(fake), slots.undecided, slots.watched, slots.arrays) == (0, set(), {}, {})


def test_an_end_at_once_makes_handles_read_the_other_object(units, texture):
    """At the end of a block, by `destroy`, and by `destroyTextureObject`; a second end is none."""
    fake, slots = units
    with jt.unit.bind(texture, HARDWARE) as bound:
        number, copied = np.asarray(bound.handle).copy(), bound.handle ^ jnp.uint32(0)
        assert not is_other(fake.read(copied)[0])
    assert bound_objects(fake) == 0
    for handle in (number, copied):
        found, stored = fake.read(handle)
        assert is_other(found)
        assert np.isnan(np.frombuffer(stored.copies[0][1], np.float32)).all()
    bound.destroy()
    # The slot has a new generation, so the next object there is not read by the old handle.
    again = jt.unit.bind(texture, HARDWARE)
    assert [*np.asarray(again.handle)[:2]] == [*number[:2]]
    assert np.asarray(again.handle)[2] == number[2] + 1
    assert is_other(fake.read(number)[0])
    with again:
        again.destroy()
    settled(slots)
    assert (bound_objects(fake), fake.count("destroy_object"), fake.count("destroy_array")) == (0, 2, 2)


def test_objects_of_integers_end_as_zeros(units):
    """Of each kind, an array of one texel that the same instruction reads."""
    fake, _ = units
    for name, make, dtype, shape, array in (
        ("2d", jt.texture2d, np.uint8, (4, 6, 1), (1, 1, 0, 0x03, 4, GATHERED)),
        ("1d", jt.texture1d_layered, np.int32, (2, 6, 1), (1, 0, 1, 0x0A, 4, LAYERED)),
        ("cube", jt.cubemap_layered, np.int8, (2, 6, 4, 4, 1), (1, 1, 6, 0x0A, 4, CUBEMAP | LAYERED)),
        ("3d", jt.texture3d, np.float32, (2, 3, 4, 1), (1, 1, 1, 0x20, 4, 0)),
    ):
        bound = jt.unit.bind(make(texels(*shape, dtype=dtype)), sampler(filter_mode="point"))
        number = np.asarray(bound.handle).copy()
        bound.destroy()
        found, stored = fake.read(number)
        with named(name):
            assert is_other(found)
            assert (*fields(stored.descriptor).values(),) == array
            (sizes, data), slices = stored.copies[0], max(array[2], 1)
            assert sizes == (16, 1, slices)
            assert data == np.full(4 * slices, 0x7FC00000 if dtype == np.float32 else 0, np.uint32).tobytes()


def test_programs_end_before_an_object(units, texture):
    """What was dispatched before has run; then no kernel finds the object, then none that did is left."""
    fake, slots = units
    bound = jt.unit.bind(texture, HARDWARE)
    address = slots.last_program
    slots.last_program = lambda token: (fake.log.append(("program",)), address(token))[1]
    fake.log.clear()
    bound.destroy()
    assert [name for name, *_ in fake.log] == ["program", "write", "synchronize", "destroy_object", "destroy_array"]


def test_slots_are_used_again(units, texture):
    fake, slots = units
    names, most = [], 0
    for k in range(2000):
        bound = jt.unit.bind(texture, HARDWARE, keep_texels=False)
        if k % 100 == 0:
            names.append((*map(int, np.asarray(bound.handle)),))
        most = max(most, len(fake.arrays))
    del bound
    settled(slots)
    assert len({*names}) == len(names)
    assert most <= 2 * objects.MOST_WAITING + 64
    assert (fake.count("allocate"), bound_objects(fake), len(slots.held)) == (1, 0, 0)
    assert not slots.watched
    assert not slots.arrays
    assert len(fake.arrays) == 1  # of the other object
    assert sum(map(len, slots.free.values())) == objects.SLOTS_AT_A_TIME


def test_many_objects_at_once_take_more_slots(units, texture):
    fake, slots = units
    bound = [jt.unit.bind(texture, HARDWARE, keep_texels=False) for _ in range(objects.SLOTS_AT_A_TIME + 3)]
    found = {(*map(int, np.asarray(each.handle)),): fake.read(each.handle)[0].array for each in bound}
    assert len({*found}) == len({*found.values()}) == len(bound)
    assert fake.count("allocate") == 2
    del bound
    settled(slots)
    assert bound_objects(fake) == 0


def test_a_bind_without_memory_waits_for_what_is_gone(units, texture):
    fake, slots = units
    gone = jt.unit.bind(texture, HARDWARE)
    fake.errors["make_array"] = [OUT_OF_MEMORY]
    waited = threading.Event()
    wait = slots.wait
    slots.wait = lambda *_: (wait(5), waited.set())
    del gone
    gc.collect()
    bound = jt.unit.bind(texture, HARDWARE)
    assert waited.is_set()
    # The new array came after the old one was destroyed, which the thread may do at any time from `del` on.
    order = [name for name, *_ in fake.log if name in ("make_array", "destroy_array")]
    assert order[-1] == "make_array"
    assert "destroy_array" in order[-3:-1]
    assert bound_objects(fake) == 1
    fake.errors["make_array"] = [OUT_OF_MEMORY, OUT_OF_MEMORY]
    with pytest.raises(RuntimeError, match="no memory"):
        jt.unit.bind(texture, HARDWARE)
    del bound


@pytest.mark.parametrize("function", ["copy_to_array", "level_of", "make_object", "write", "allocate"])
def test_a_bind_that_fails_leaves_nothing(units, function):
    fake, slots = units
    chain = jt.build_mipmaps(jt.texture2d(jnp.asarray(IMAGE)))
    if function != "allocate":
        jt.unit.bind(chain, HARDWARE).destroy()
    before = len(fake.arrays), len(fake.objects)
    fake.errors[function] = [driver.DriverError("refused", 700)]
    with pytest.raises(RuntimeError, match="refused"):
        jt.unit.bind(chain, HARDWARE)
    settled(slots)
    other = function == "allocate"  # which stays for the next bind
    assert (len(fake.arrays), len(fake.objects)) == (before[0] + other, before[1] + other)
    # And the next one works, in a slot that no other has.
    again = [jt.unit.bind(chain, HARDWARE) for _ in range(2)]
    assert fake.read(again[0].handle)[0].array != fake.read(again[1].handle)[0].array
    assert sum(map(len, slots.free.values())) == objects.SLOTS_AT_A_TIME - 2


def test_threads_bind_and_drop(units, texture):
    """One thread donates a texture to program after program."""
    fake, slots = units
    failed = []

    def work(number):
        try:
            for k in range(40):
                bound = jt.unit.bind(texture, HARDWARE, keep_texels=False)
                mine = fake.read(bound.handle)
                if is_other(mine[0]):
                    raise AssertionError("a new handle reads another object")
                if (k + number) % 3 == 0:
                    bound.destroy()
        except Exception as error:
            failed.append(error)

    turn = jax.jit(lambda t: dataclasses.replace(t, handle=t.handle ^ jnp.uint32(0)), donate_argnums=0)

    def keep():
        try:
            state = jt.unit.bind(texture, HARDWARE, keep_texels=False)
            expected = fake.read(state.handle)
            for _ in range(1000):
                state = turn(state)
                assert fake.read(state.handle) == expected
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)] + [threading.Thread(target=keep)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    settled(slots)
    settled(slots)
    assert not failed
    assert (bound_objects(fake), len(slots.held)) == (0, 0)
    assert fake.count("destroy_object") == 241


def test_a_driver_that_fails_does_not_end_the_thread(units, texture):
    fake, slots = units
    bound = jt.unit.bind(texture, HARDWARE)
    fake.errors["synchronize"] = [driver.DriverError("illegal address", 700)]
    del bound
    settled(slots)
    assert slots.thread.is_alive()
    with contextlib.suppress(driver.DriverError):
        jt.unit.bind(texture, HARDWARE)
    settled(slots)
    assert slots.thread.is_alive()
    assert bound_objects(fake) <= 1  # that of the failed end; nobody reads it


def test_each_device_of_a_mesh_has_its_object(texture):
    """And what is not whole on each device is refused."""
    devices = jax.devices("cpu")
    if len(devices) < 2:
        pytest.skip("needs two devices")
    mesh = jax.make_mesh((2,), ("a",), devices=devices[:2])
    place = lambda *axes: jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))
    with devices_with_units() as (fake, slots_of):
        bound = jt.unit.bind(jax.device_put(texture, place()), HARDWARE)
        parts = [fake.read(shard.data) for shard in bound.handle.addressable_shards]
        assert len({made.array for made, _ in parts}) == 2
        for device in devices[:2]:
            settled(slots_of(device))
        assert bound_objects(fake) == 2
        copied = jax.jit(lambda h: h ^ jnp.uint32(0))(bound.handle)
        del bound
        for device in devices[:2]:
            settled(slots_of(device))
        assert [fake.read(shard.data) for shard in copied.addressable_shards] == parts
        del copied
        for device in devices[:2]:
            settled(slots_of(device))
        assert bound_objects(fake) == 0
        with pytest.raises(ValueError, match=r"texture is sharded.*replicate it"):
            jt.unit.bind(jax.device_put(texture, place("a")), HARDWARE)
