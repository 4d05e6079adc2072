"""Texture objects that live as long as an array that names them, and never longer than a kernel can know.

A handle is an array of three numbers: the address of a slot in memory of the device, in two words, and a generation. A
slot holds a texture object and the generation of the handles that may use it. Slots are never freed, so a kernel may
read the slot of any handle, and reads by its object only if the generations are equal. To destroy an object:

1. Programs that were dispatched before are finished: a program that does nothing is run after them.
2. The slot gets a new generation. Kernels that start from now on find no object.
3. The device finishes all kernels that started before.
4. The object and its array are destroyed, and the slot is free.
"""

import atexit
import contextlib
import ctypes
import functools
import queue
import struct
import threading
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from . import driver

# The slots of a device are allocated together, so many at a time; a slot has 16 bytes.
SLOTS_AT_A_TIME, SLOT_BYTES = 4096, 16
# The numbers of a handle.
HANDLE_SIZE = 3
# If so many objects wait to be destroyed, a new one waits for them.
MOST_WAITING = 64
# Types of a device, which JAX does not declare.
Device = Any


class Held(NamedTuple):
    """What a slot names: a texture object, and what it reads."""

    made: int
    array: ctypes.c_void_p
    num_levels: int


class Slots:
    """The slots of a device. Its methods may be called by several threads.

    Attributes:
        held: for the address of a slot, the generation of its handles, and what they name.
        dropped: what the thread is told: the slot, the generation and the address of the memory of an array that is
            gone; an event that is set when all before it is done; or `None`, to end.
    """

    def __init__(self, device: Device):
        self.device, self.ordinal = device, device.local_hardware_id
        self.lock = threading.RLock()
        self.free: list[tuple[int, int]] = []  # addresses, and the last generation of each
        self.held: dict[int, tuple[int, Held]] = {}
        self.dropped: queue.SimpleQueue[tuple[int, int, int] | threading.Event | None] = queue.SimpleQueue()
        self.last_program = jax.jit(lambda x: x + 1)
        self.token = jax.device_put(np.zeros((), np.int32), device)
        self.thread = threading.Thread(target=self.destroy_dropped, name="jaxtex-unit", daemon=True)
        self.thread.start()
        atexit.register(self.end)

    def hold(self, held: Held) -> jax.Array:
        """The handle of an object, which is destroyed when nobody holds the array."""
        with self.lock, driver.on_device(self.ordinal):
            if not self.free:
                first = driver.allocate(SLOTS_AT_A_TIME * SLOT_BYTES)
                driver.write(first, bytes(SLOTS_AT_A_TIME * SLOT_BYTES))
                self.free = [(first + k * SLOT_BYTES, 0) for k in reversed(range(SLOTS_AT_A_TIME))]
            address, generation = self.free.pop()
            generation = generation % (2**32 - 1) + 1
            self.held[address] = generation, held
            driver.write(address, struct.pack("<QII", held.made, generation, 0))
        numbers = np.array([address & 0xFFFFFFFF, address >> 32, generation], np.uint32)
        handle = jax.device_put(numbers, self.device)
        self.watch(handle, address, generation, handle.unsafe_buffer_pointer())
        return handle

    def watch(self, handle: jax.Array, address: int, generation: int, memory: int) -> None:
        # A finalizer runs at any time, in the middle of anything, so it takes no lock.
        weakref.finalize(handle, self.dropped.put, (address, generation, memory)).atexit = False

    def destroy_dropped(self) -> None:
        """The thread that destroys the objects of arrays that are gone."""
        while True:
            found = [self.dropped.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    found.append(self.dropped.get_nowait())
            gone = [one for one in found if isinstance(one, tuple)]
            # JAX may return an argument of a program as another array of the same memory. That one is watched instead.
            others = handles_on(self.device) if gone else {}
            for address, generation, memory in gone:
                if memory in others:
                    self.watch(others[memory], address, generation, memory)
            alone = [one[:2] for one in gone if one[2] not in others]
            others.clear()
            with contextlib.suppress(Exception):  # of a device that has failed
                self.destroy(alone)
            for one in found:
                if isinstance(one, threading.Event):
                    one.set()
            if None in found:
                return

    def destroy(self, handles: Sequence[tuple[int, int]]) -> None:
        """Destroys the objects of slots and generations, of those that still have one."""
        if not any(self.is_held(*handle) for handle in handles):
            return
        with contextlib.suppress(Exception):
            self.last_program(self.token).block_until_ready()
        with self.lock, driver.on_device(self.ordinal):
            gone = [(*handle, self.held.pop(handle[0])[1]) for handle in dict.fromkeys(handles) if self.is_held(*handle)]
            for address, *_ in gone:
                driver.write(address, bytes(SLOT_BYTES))
            driver.synchronize()
            for address, generation, held in gone:
                driver.destroy_object(held.made)
                driver.destroy_array(held.array, held.num_levels)
                self.free.append((address, generation))

    def is_held(self, address: int, generation: int) -> bool:
        return address in self.held and self.held[address][0] == generation

    def wait(self, seconds: float = 60) -> None:
        """Waits until the objects of all arrays that are gone are destroyed."""
        done = threading.Event()
        self.dropped.put(done)
        done.wait(seconds)

    def end(self) -> None:
        self.dropped.put(None)
        self.thread.join(10)


def handles_on(device: Device) -> dict[int, jax.Array]:
    """The arrays that look like handles, by their memory on a device."""
    found: dict[int, jax.Array] = {}
    with contextlib.suppress(RuntimeError):  # an array is deleted meanwhile
        for a in jax.live_arrays(device.platform):
            if a.shape == (HANDLE_SIZE,) and a.dtype == np.uint32 and not a.is_deleted() and device in a.devices():
                found |= {s.data.unsafe_buffer_pointer(): a for s in a.addressable_shards if s.device == device}
    return found


@functools.cache
def slots_of(device: Device) -> Slots:
    return Slots(device)


def destroy(handle: jax.Array) -> None:
    """Destroys the texture objects of a handle, after the programs that use them."""
    for shard in handle.addressable_shards:
        if shard.device.platform != "cpu":
            low, high, generation = map(int, np.asarray(shard.data))
            slots_of(shard.device).destroy([(low | high << 32, generation)])
    handle.delete()


class Levels(NamedTuple):
    """The texels of the levels of a texture as the driver takes them.

    Attributes:
        arrays: for each level, an array on the device, row after row.
        rows: for each level, the bytes of a row, the number of rows, and that of slices, layers or faces.
        descriptor: of the array.
        num_levels: of a mipmapped array; 0 for a plain array.
    """

    arrays: Sequence[jax.Array]
    rows: Sequence[tuple[int, int, int]]
    descriptor: driver.ArrayDescriptor
    num_levels: int


def made(levels: Levels, texture: driver.TextureDescriptor, device: Device) -> jax.Array:
    """The handle of a new texture object, which reads a copy of the texels."""
    slots = slots_of(device)
    if slots.dropped.qsize() > MOST_WAITING:
        slots.wait()
    with driver.on_device(slots.ordinal):
        try:
            array = driver.make_array(levels.descriptor, levels.num_levels)
        except driver.DriverError as error:
            if error.code != driver.OUT_OF_MEMORY:
                raise
            slots.wait()
            array = driver.make_array(levels.descriptor, levels.num_levels)
        try:
            for k, (level, rows) in enumerate(zip(levels.arrays, levels.rows, strict=True)):
                part = driver.level_of(array, k) if levels.num_levels else array
                driver.copy_to_array(level.unsafe_buffer_pointer(), part, *rows)
            held = Held(driver.make_object(array, levels.num_levels, texture), array, levels.num_levels)
        except driver.DriverError:
            driver.destroy_array(array, levels.num_levels)
            raise
    return slots.hold(held)
