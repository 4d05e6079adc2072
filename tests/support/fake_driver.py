"""A driver of CUDA in memory of the host, for what `jaxtex.unit` asks of one: it knows what exists, and what is gone.

A fault, such as a use of what was destroyed, is noted: threads of the library have nobody to raise an error to.
"""

import contextlib
import ctypes
import functools
import itertools
import threading
from typing import NamedTuple
from unittest import mock

import numpy as np

import jaxtex.unit
from jaxtex._unit import driver, objects

FUNCTIONS = ("on_device", "make_array", "level_of", "destroy_array", "copy_to_array", "make_object", "destroy_object")
FUNCTIONS += ("allocate", "write", "synchronize")
# No two drivers use a name, or an address: an array of one test may outlive it.
NAMES = itertools.count(1)


class Level(NamedTuple):
    """A level of a mipmapped array."""

    array: int
    number: int


class Array(NamedTuple):
    """What an array is made of, and the bytes of each level with the sizes of their copy."""

    descriptor: driver.ArrayDescriptor
    num_levels: int
    copies: dict


class Object(NamedTuple):
    """What a texture object is made of."""

    array: int
    num_levels: int
    descriptor: driver.TextureDescriptor


class FakeDriver:
    """The functions of `jaxtex._unit.driver`.

    Attributes:
        arrays, objects: those that exist, by their names.
        log: what was asked for, in order.
        faults: what a driver would have refused, or crashed at.
        errors: of a function by its name, what its next calls raise; `None` for a call that works.
    """

    def __init__(self):
        self.arrays, self.objects, self.memory = {}, {}, {}
        self.log, self.faults, self.errors = [], [], {}
        self.current = threading.local()

    def begin(self, function, *args):
        self.log.append((function, *args))
        if not getattr(self.current, "depth", 0):
            self.faults.append(f"{function} outside of a device")
        errors = self.errors.get(function)
        error = errors.pop(0) if errors else None
        if error:
            raise error

    @contextlib.contextmanager
    def on_device(self, ordinal):
        self.current.depth = getattr(self.current, "depth", 0) + 1
        try:
            yield
        finally:
            self.current.depth -= 1

    def make_array(self, descriptor, num_levels):
        self.begin("make_array")
        name = next(NAMES)
        self.arrays[name] = Array(type(descriptor).from_buffer_copy(descriptor), num_levels, {})
        return name

    def level_of(self, array, level):
        self.begin("level_of", array)
        return Level(array, level)

    def destroy_array(self, array, num_levels):
        self.begin("destroy_array", array)
        if any(made.array == array for made in [*self.objects.values()]):
            self.faults.append(f"array {array} is destroyed before its object")
        gone = self.arrays.pop(array, None)
        if gone is None or gone.num_levels != num_levels:
            self.faults.append(f"array {array} is destroyed as {num_levels} levels: {gone}")

    def copy_to_array(self, source, array, row_bytes, rows, slices):
        self.begin("copy_to_array", array)
        name, level = (array.array, array.number) if isinstance(array, Level) else (array, 0)
        if name not in self.arrays:
            self.faults.append(f"array {name} is gone, and copied to")
            return
        data = source if isinstance(source, bytes) else ctypes.string_at(source, row_bytes * rows * slices)
        self.arrays[name].copies[level] = (row_bytes, rows, slices), data

    def make_object(self, array, num_levels, descriptor):
        self.begin("make_object", array)
        if array not in self.arrays or self.arrays[array].num_levels != num_levels:
            self.faults.append(f"an object is made of array {array} with {num_levels} levels")
        # Not the number of an array, so that no one takes one for the other.
        name = next(NAMES) << 33 | 5
        self.objects[name] = Object(array, num_levels, type(descriptor).from_buffer_copy(descriptor))
        return name

    def destroy_object(self, made):
        self.begin("destroy_object", made)
        if self.objects.pop(made, None) is None:
            self.faults.append(f"object {made} is destroyed twice")

    def allocate(self, size):
        self.begin("allocate", size)
        address = next(NAMES) << 32
        self.memory[address] = bytearray(size)
        return address

    def write(self, address, data):
        self.begin("write", address)
        start, block = self.block_of(address, len(data))
        block[address - start : address - start + len(data)] = data

    def synchronize(self):
        self.begin("synchronize")

    def block_of(self, address, size):
        """The allocation that holds so many bytes at an address, and where it starts."""
        for start, block in [*self.memory.items()]:
            if start <= address and address + size <= start + len(block):
                return start, block
        raise AssertionError(f"{size} bytes at {address} are not allocated")

    # What a test asks

    def read(self, handle):
        """What a kernel would read by a handle: the object that it finds in the slot, and its array."""
        low, high, generation = map(int, np.asarray(handle))
        address = low | high << 32
        start, block = self.block_of(address, objects.SLOT.size)
        made, kept, _, other, _ = objects.SLOT.unpack_from(block, address - start)
        found = self.objects[made if kept == generation else other]
        return found, self.arrays[found.array]

    def count(self, function):
        return sum(name == function for name, *_ in self.log)


@contextlib.contextmanager
def devices_with_units():
    """Every device has a texture unit meanwhile; yields the driver, and a function that finds the slots of a device."""
    fake, slots_of = FakeDriver(), functools.cache(objects.Slots)
    made = []

    def slots(device):
        found = slots_of(device)
        made.extend([found] * (found not in made))
        return found

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.multiple(driver, **{name: getattr(fake, name) for name in FUNCTIONS}))
        stack.enter_context(mock.patch.object(jaxtex.unit, "on_gpus", return_value=True))
        stack.enter_context(mock.patch.object(objects, "slots_of", slots))
        try:
            yield fake, slots
        finally:
            for each in made:
                each.end()
    assert not fake.faults, fake.faults
