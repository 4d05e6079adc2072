"""The calls whose programs are compared, by name."""

import itertools

from tests.compiled import calls, field_calls
from tests.lowered import cuda, devices, public, reads, storage, warps
from tests.lowered.programs import Call


def of(*tables):
    """The calls of tables of the tests, and of this folder."""
    found = {}
    for name, call in itertools.chain.from_iterable(table.items() for table in tables):
        assert name not in found, f"two calls are named {name}"
        found[name] = call if isinstance(call, Call) else Call(call.function, call.args, call.wrt)
    return found


GROUPS = {
    "reads": of(calls.POINTS, calls.FILTERS, calls.TEXELS, calls.FOOTPRINTS, calls.BATCHES, reads.READS),
    "fields": of(field_calls.FIELDS),
    "splats": of(field_calls.SPLATS, reads.SPLATS),
    "models": of(field_calls.MODELS),
    "storage": storage.STORAGE,
    "writes": reads.WRITES,
    "warps": warps.WARPS,
    "large": warps.LARGE,
    "public": public.PUBLIC,
    "options": public.OPTIONS,
    "samplers": public.FIELDS,
    "cuda": cuda.CUDA,
    "sharded": devices.SHARDED,
    "automatic": devices.AUTOMATIC,
}
CALLS = {f"{group}/{name}": call for group, table in GROUPS.items() for name, call in table.items()}
