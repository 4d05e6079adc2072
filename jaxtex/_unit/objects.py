"""Texture objects: how the arrays of a program name them, and when they are destroyed.

A handle is an array of three numbers: the address of a slot in memory of the device, in two words, and a generation. A
slot holds a texture object, the generation of the handles that may use it, and another object of the same sort, whose
texels are NaN or 0, for handles of other generations. Slots and those other objects are never freed, so whatever a
program does with a handle, its kernels read by an object that exists. To destroy an object:

1. Programs that were dispatched before are finished: a program that does nothing is run after them.
2. The slot gets a new generation. Kernels that start from now on find the other object.
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
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, cast

import jax
import numpy as np
from jax.core import Tracer

from . import driver

# The slots of a sort are allocated together, so many at a time. A slot is an object, a generation and padding, then
# another object and padding.
SLOTS_AT_A_TIME, SLOT = 512, struct.Struct("<QIIQQ")
# If more objects than this wait to be destroyed, `made` waits for them.
MOST_WAITING = 64
# The numbers of a handle.
HANDLE_SIZE = 3
# Held while the thread reads an array of the caller, and while one is deleted: XLA aborts if both happen at once.
READING = threading.RLock()
# Types of a device, which JAX does not declare.
Device = Any
# The address of a slot, and the generation of a handle.
Name = tuple[int, int]


class Content(NamedTuple):
    """What an object reads, as the driver takes it.

    Attributes:
        levels: for each level, an array on the device, row after row.
        rows: for each level, the bytes of a row, the number of rows, and that of slices, layers or faces.
        array: the descriptor of the array.
        texture: the descriptor of the object.
        sort: equal for objects that the same instructions may read.
        empty: the descriptor of an array of one texel of that sort, of four channels of 32 bits.
        nothing: the bits of a channel of that texel.
    """

    levels: Sequence[jax.Array]
    rows: Sequence[tuple[int, int, int]]
    array: driver.ArrayDescriptor
    texture: driver.TextureDescriptor
    sort: Hashable
    empty: driver.ArrayDescriptor
    nothing: int

    @property
    def num_levels(self) -> int:
        """The number of levels of a mipmapped array; 0 for a plain array."""
        return len(self.levels) if len(self.levels) > 1 else 0


class Held(NamedTuple):
    """What a slot names: a texture object, and what it reads."""

    generation: int
    made: int
    array: ctypes.c_void_p
    num_levels: int


# The slots of all devices that have some.
ALL: "weakref.WeakSet[Slots]" = weakref.WeakSet()


class Slots:
    """The slots of a device. Its methods may be called by several threads.

    Attributes:
        held: what the slots name, by their addresses.
        arrays: those that hold a handle, or may hold one, by their identities, which a later array may have again.
            Their memory would not tell: that of an array that was deleted or donated is given to another one.
        watched: the handles that are known of them.
        unseen: those whose handles nobody has read, as programs returned them.
        undecided: handles of arrays that are gone, which an unseen array may hold.
        dropped: what the thread is told: the identity of an array that is gone, and the handle if it was known; an
            event that is set when all before it is done; or `None`, to end.
    """

    def __init__(self, device: Device):
        self.device, self.ordinal = device, device.local_hardware_id
        self.lock = threading.RLock()
        self.free: dict[Hashable, list[Name]] = {}  # slots, and their last generations
        self.others: dict[Hashable, int] = {}
        self.sorts: dict[int, Hashable] = {}
        self.held: dict[int, Held] = {}
        self.noting = threading.RLock()  # held for a moment while these change
        self.arrays: dict[int, weakref.ref[jax.Array]] = {}
        self.watched: dict[int, Name] = {}
        self.unseen = set[int]()
        self.undecided = set[Name]()
        self.dropped: queue.SimpleQueue[tuple[int, Name | None] | threading.Event | None] = queue.SimpleQueue()
        self.last_program: Any = jax.jit(incremented)
        self.token = jax.device_put(np.zeros((), np.int32), device)
        self.thread = threading.Thread(target=self.destroy_dropped, name="jaxtex-unit", daemon=True)
        self.thread.start()
        atexit.register(self.end)
        ALL.add(self)

    # Making

    def made(self, content: Content) -> jax.Array:
        """The handle of a new texture object, which reads a copy of the levels."""
        if self.dropped.qsize() > MOST_WAITING:
            self.wait()
        # Nothing is locked while an array is made: that may wait for the thread.
        with driver.on_device(self.ordinal), contextlib.ExitStack() as undo:
            array = self.new_array(content)
            undo.callback(driver.destroy_array, array, content.num_levels)
            for k, (level, rows) in enumerate(zip(content.levels, content.rows, strict=True)):
                part = driver.level_of(array, k) if content.num_levels else array
                driver.copy_to_array(level.unsafe_buffer_pointer(), part, *rows)
            made = driver.make_object(array, content.num_levels, content.texture)
            undo.callback(driver.destroy_object, made)
            with self.lock:
                name = address, generation = self.free_slot(content)
            undo.callback(self.free[content.sort].append, name)
            # The device copies meanwhile; the slot is written after that.
            numbers = np.array([address & 0xFFFFFFFF, address >> 32, generation], np.uint32)
            handle = jax.device_put(numbers, self.device)
            driver.write(address, SLOT.pack(made, generation, 0, self.others[content.sort], 0))
            self.held[address] = Held(generation, made, array, content.num_levels)
            self.watch(handle, name)
            undo.pop_all()
        return handle

    def new_array(self, content: Content) -> ctypes.c_void_p:
        """An array of the device; if memory is short, after what is gone is destroyed."""
        try:
            return driver.make_array(content.array, content.num_levels)
        except driver.DriverError as error:
            if error.code != driver.OUT_OF_MEMORY:
                raise
        self.wait()
        return driver.make_array(content.array, content.num_levels)

    def free_slot(self, content: Content) -> Name:
        """A slot for objects of a sort, and its next generation."""
        free = self.free.setdefault(content.sort, [])
        if not free:
            if content.sort not in self.others:
                self.others[content.sort] = other_object(content)
            size = SLOTS_AT_A_TIME * SLOT.size
            first = driver.allocate(size)
            driver.write(first, SLOTS_AT_A_TIME * SLOT.pack(0, 0, 0, self.others[content.sort], 0))
            free += [(first + place, 0) for place in reversed(range(0, size, SLOT.size))]
            self.sorts |= dict.fromkeys((address for address, _ in free), content.sort)
        address, generation = free.pop()
        return address, generation % (2**32 - 1) + 1

    # Destroying

    def watch(self, array: jax.Array, name: Name) -> None:
        """Tells the thread when an array with a handle is gone."""
        with self.noting:
            self.arrays[id(array)] = weakref.ref(array)
            self.watched[id(array)] = name
            self.unseen.discard(id(array))
        # A finalizer runs at any time, in the middle of anything, so it takes no lock.
        weakref.finalize(array, self.dropped.put, (id(array), name)).atexit = False

    def note(self, array: jax.Array) -> None:
        """Tells the thread of an array that may hold a handle."""
        with self.noting:
            if self.found(id(array)) is array:
                return
            self.arrays[id(array)] = weakref.ref(array)
            self.watched.pop(id(array), None)
            self.unseen.add(id(array))
        weakref.finalize(array, self.dropped.put, (id(array), None)).atexit = False

    def found(self, identity: int) -> jax.Array | None:
        """The array of an identity, if it still exists."""
        ref = self.arrays.get(identity)
        return ref() if ref else None

    def destroy_dropped(self) -> None:
        """The thread that destroys the objects of handles that no array holds."""
        while True:
            found = [self.dropped.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    found.append(self.dropped.get_nowait())
            gone = [one for one in found if isinstance(one, tuple)]
            with contextlib.suppress(Exception):  # of a device that has failed
                self.destroy(self.without_arrays(gone))
            for one in found:
                if isinstance(one, threading.Event):
                    one.set()
            if None in found:
                return

    def without_arrays(self, gone: Sequence[tuple[int, Name | None]]) -> list[Name]:
        """The handles of arrays that are gone, without those that another array holds, which is then watched.

        A program returns copies of its arguments, such as of a bound texture in a state that it updates. While it is
        called, an array that is donated to it holds no handle any more, and the result does not exist yet.
        """
        with self.noting:
            for identity, _ in gone:
                if self.found(identity) is None:
                    self.arrays.pop(identity, None)
                    self.watched.pop(identity, None)
                    self.unseen.discard(identity)
        names = {name for name in self.undecided.union(name for _, name in gone if name) if self.is_held(name)}
        self.undecided = set[Name]()
        if not names:
            return []
        looked_at = set[int]()
        while new := self.unseen - looked_at:
            for a in map(self.found, new):
                if a is None:
                    continue
                with contextlib.suppress(RuntimeError), READING:
                    for part in (shard.data for shard in a.addressable_shards if shard.device == self.device):
                        self.watch(a, name_of(part))
            looked_at |= new
        if self.unseen:
            # They are deleted: they were donated. When they are gone, too, the results are there to be looked at.
            self.undecided = names
            return []
        names -= {*self.watched.values()}
        return [*(names - self.copied(names))] if names else []

    def copied(self, names: set[Name]) -> set[Name]:
        """The handles among `names` that an array of the device holds."""
        found = set[Name]()
        for a in cast(list[Any], jax.live_arrays(self.device.platform)):
            if a.shape != (HANDLE_SIZE,) or a.dtype != np.uint32:
                continue
            # It may be deleted, or computed by a program that failed.
            with contextlib.suppress(RuntimeError), READING:
                for part in (s.data for s in a.addressable_shards if s.device == self.device):
                    if id(a) not in self.watched or self.found(id(a)) is not a:
                        name = name_of(part)
                        if self.is_held(name):
                            self.watch(a, name)
                    if self.watched.get(id(a)) in names:
                        found.add(self.watched[id(a)])
        return found

    def destroy(self, names: Sequence[Name]) -> None:
        """Destroys the objects of handles, of those that still have one."""
        if not any(map(self.is_held, names)):
            return
        with contextlib.suppress(Exception):
            self.last_program(self.token).block_until_ready()
        with self.lock, driver.on_device(self.ordinal):
            gone = [(name, self.held.pop(name[0])) for name in dict.fromkeys(names) if self.is_held(name)]
            for (address, _), _ in gone:
                driver.write(address, SLOT.pack(0, 0, 0, self.others[self.sorts[address]], 0))
            driver.synchronize()
            for name, held in gone:
                driver.destroy_object(held.made)
                driver.destroy_array(held.array, held.num_levels)
                self.free[self.sorts[name[0]]].append(name)

    def is_held(self, name: Name) -> bool:
        address, generation = name
        held = self.held.get(address)  # another thread may take it away
        return held is not None and held.generation == generation

    def wait(self, seconds: float = 60) -> None:
        """Waits until the objects of all arrays that are gone are destroyed."""
        done = threading.Event()
        self.dropped.put(done)
        done.wait(seconds)

    def end(self) -> None:
        self.dropped.put(None)
        self.thread.join(10)


def other_object(content: Content) -> int:
    """An object of the same sort of one texel, which is never destroyed."""
    array, empty = driver.make_array(content.empty, 0), content.empty
    slices = max(empty.depth, 1)
    driver.copy_to_array(struct.pack("<4I", *[content.nothing] * 4) * slices, array, 16, 1, slices)
    plain = driver.TextureDescriptor(flags=driver.READ_AS_INTEGER | driver.NORMALIZED_COORDINATES)
    plain.address_modes[:] = [1] * 3
    return driver.make_object(array, 0, plain)


def incremented(x: jax.Array) -> jax.Array:
    return x + 1


@functools.cache
def slots_of(device: Device) -> Slots:
    return Slots(device)


def note(handle: object) -> None:
    """Notes that an array may hold a handle, before the arrays go that were given to the program that returned it."""
    if ALL and isinstance(handle, jax.Array) and not isinstance(handle, Tracer) and not handle.is_deleted():
        for slots in [*ALL]:
            if slots.device in handle.devices():
                slots.note(handle)


def name_of(handle: jax.Array) -> Name:
    """What a handle on one device names."""
    low, high, generation = map(int, np.asarray(handle))
    return low | high << 32, generation


def destroy(handle: jax.Array) -> None:
    """Destroys the texture objects of a handle, after the programs that use them. A second time it does nothing."""
    if handle.is_deleted():
        return
    for shard in handle.addressable_shards:
        name = name_of(shard.data)
        if any(name):  # it has a texture unit
            slots_of(shard.device).destroy([name])
    with READING:
        handle.delete()
