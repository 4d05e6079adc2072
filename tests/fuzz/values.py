"""Values of other types than the texels, drawn at random: what is stored, and what is refused."""

import contextlib

import jax
import numpy as np

import jaxtex as jt
from jaxtex import cuda
from tests.fuzz.cuda import DTYPES, STORE, answer, arrays_of
from tests.fuzz.draws import assert_same, naming, pick
from tests.fuzz.surfaces import REDUCTIONS, dtype_of
from tests.oracles import memory as oracle

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
FLOATS = {"float32": 24, "float16": 11, "bfloat16": 8}
OPERATIONS = {"write": jt.surface_write, **REDUCTIONS}
SOURCES = ("python", "list", "int64", "uint64", "traced", "jax int64", "jax uint64", "same", "other", "float", "bool")
CUDA_SOURCES = ("python", "python", "int64", "uint64", "float64", "jax float64", "jax int64", "jax uint64")
CUDA_SOURCES += ("same", "other", "bool")
INVALID_VALUE = 1
ENDS = tuple(sign * (2**k + d) for k in (7, 8, 15, 16, 24, 31, 32, 62) for d in (-1, 0, 1, 7) for sign in (1, -1))
LONG = (2**63, 2**64 + 5, -(2**80), 10**30)
COUNT = 6


def draw_numbers(rng, source, dtype):
    """Python integers that the source holds."""
    info = np.iinfo(np.int64 if "64" in source else np.int32)
    if "uint64" in source:
        info = np.iinfo(np.uint64)
    if source == "same":
        info = np.iinfo(dtype) if dtype in INTEGERS else np.iinfo(np.int8)
    numbers = [int(n) for n in rng.integers(-3, 120, COUNT)]
    if rng.random() < 0.6:
        ends = [*ENDS, *LONG] if source in ("python", "list") else ENDS
        numbers[int(rng.integers(COUNT))] = int(pick(rng, ends))
    if source in ("python", "list"):
        return numbers
    if source == "float":
        return [oracle.rounded(n, FLOATS["float32"]) for n in numbers]
    if source == "other":
        info = np.iinfo(other_than(dtype))
    return [min(max(n, int(info.min)), int(info.max)) for n in numbers]


def check(rng, samples):
    """A case: six values for six texels of a row, or one for all, and how many texels or errors were compared."""
    by_cuda = rng.random() < 0.4
    source, dtype = pick(rng, CUDA_SOURCES if by_cuda else SOURCES), pick(rng, (*INTEGERS, *FLOATS))
    x64 = "jax" in source or rng.random() < 0.2
    with jax.enable_x64(True) if x64 else contextlib.nullcontext():
        return COUNT, (check_cuda if by_cuda else check_values)(rng, source, dtype, x64)


def check_values(rng, source, dtype, x64):
    operation, integer = pick(rng, list(OPERATIONS)), dtype in INTEGERS
    numbers = draw_numbers(rng, source, dtype)
    if source in ("python", "traced"):
        numbers = numbers[:1] * COUNT if operation != "add" or integer else [int(np.clip(numbers[0], -8, 8))] * COUNT
    elif operation == "add" and not integer:
        numbers = [int(np.clip(n, -8, 8)) for n in numbers]  # whose sums with texels are exact
    old = rng.integers(0, 100, (COUNT, 1)).astype(dtype_of(dtype))
    values, refused = passed(source, dtype, numbers), refusal(source, dtype, numbers)
    texture, x = jt.texture1d(jax.device_put(old)), np.arange(COUNT, dtype=np.int32)
    function = OPERATIONS[operation]
    text = f"surface_{operation} of {source} {numbers} into {dtype}{' x64' if x64 else ''}"
    with naming(text):
        if refused:
            return assert_raises(lambda: function(texture, values, (x,)), refused)
        if source == "traced":
            found = jax.jit(lambda value: function(texture, value, (x,)).texels)(values)
        else:
            found = function(texture, values, (x,)).texels
        return assert_same(found, expectation(operation, dtype, old, numbers), "texels")


def passed(source, dtype, numbers):
    if source in ("python", "traced"):
        return numbers[0]
    if source == "list":
        return [[n] for n in numbers]
    if source in ("int64", "uint64"):
        return np.array(numbers, source)[:, None]
    if source.startswith("jax"):
        return jax.device_put(np.array(numbers, source.removeprefix("jax "))[:, None])
    if source in ("float", "float64"):
        return np.array(numbers, {"float": np.float32}.get(source, source))[:, None]
    if source == "bool":
        return np.array(numbers)[:, None] > 50
    return np.array(numbers).astype(dtype_of(other_than(dtype) if source == "other" else dtype))[:, None]


def other_than(dtype):
    return "int8" if dtype == "int16" else "int16"


def refusal(source, dtype, numbers):
    """The class of the error, or None: of numbers that are known and do not fit, and of types that are not taken."""
    if source == "bool":
        return TypeError
    if dtype in FLOATS:
        return None
    if source in ("other", "float"):
        return TypeError
    known = source in ("python", "list", "int64", "uint64")
    return ValueError if known and not oracle.fits(numbers, dtype) else None


def expectation(operation, dtype, old, numbers):
    """The texels afterwards."""
    texels = [int(n) for n in old[:, 0]]
    if dtype in INTEGERS:
        new = [oracle.saturated(n, dtype) for n in numbers]
    else:
        new = [oracle.rounded(n, FLOATS[dtype]) for n in numbers]
    join = {"write": lambda a, b: b, "add": lambda a, b: a + b, "min": min, "max": max}[operation]
    joined = [join(a, b) for a, b in zip(texels, new)]
    if dtype in INTEGERS:  # sums wrap around
        return np.array([n % 2**64 for n in joined], np.uint64).astype(dtype)[:, None]
    largest = float(np.finfo(np.float16).max) if dtype == "float16" else 3.5e38
    floats = [float(n) if abs(n) <= largest else np.inf * np.sign(n) for n in joined]
    return np.array(floats, np.float64).astype(np.float32).astype(dtype_of(dtype))[:, None]


def check_cuda(rng, source, dtype, x64):
    """Numbers for arrays, linear memory and surfaces of CUDA: nothing is converted but numbers of 64 bits."""
    formats = {dtype: name for name, dtype in DTYPES.items() if not dtype.endswith("64")}
    dtype = dtype if dtype in formats else "float32"
    how = pick(rng, ("memcpyToArray", "Linear", "surf1Dwrite"))
    doubles = source.endswith("float64")
    numbers = draw_numbers(rng, "float" if doubles else source, dtype)
    if doubles and rng.random() < 0.3:
        numbers[0] += 2**-30  # float32 has no such number
    values = passed("list" if source == "python" else source, dtype, numbers)
    values = [row[0] for row in values] if isinstance(values, list) else values[:, 0]
    desc = cuda.createChannelDesc(formats[dtype])
    extent = (COUNT, 0, 0), STORE
    array = arrays_of((*formats.values(),), (extent,))[formats[dtype], *extent]
    x = np.arange(COUNT, dtype=np.int32)

    def store():
        if how == "memcpyToArray":
            return cuda.memcpyToArray(array, values).texels[:, 0]
        if how == "surf1Dwrite":
            return cuda.surf1Dwrite(values, array, x * np.dtype(dtype).itemsize).texels[:, 0]
        t = cuda.createTextureObject(cuda.ResourceDesc.Linear(values, desc), cuda.TextureDesc())
        return cuda.tex1Dfetch(t, x)

    text = f"{how} of {source} {numbers} into {dtype}{' x64' if x64 else ''}"
    with naming(text):
        code, found = answer(store)
        expected = stored_by_cuda(source, dtype, numbers)
        if how == "Linear" and doubles and dtype in ("int32", "uint32"):  # pairs of words
            expected = np.array(numbers, np.float64).view(dtype)[:COUNT]
        assert bool(code) == (expected is None), f"code {code} for {'a refusal' if expected is None else 'none'}"
        if code:
            assert code == INVALID_VALUE, f"code {code}, expected {INVALID_VALUE}"
            return 1
        return assert_same(np.asarray(found).astype(dtype), expected, "texels")


def stored_by_cuda(source, dtype, numbers):
    """The numbers as they are stored, or None if they are refused."""
    integer, wide = dtype in INTEGERS, np.dtype(dtype).itemsize == 4
    if source == "python" and integer:
        return np.array(numbers, object).astype(dtype) if oracle.fits(numbers, dtype) else None
    if source == "python":
        floats = [oracle.rounded(n, FLOATS[dtype]) for n in numbers]
        if max(map(abs, floats)) > int(np.finfo(dtype).max):
            return None
        return np.array([float(n) for n in floats]).astype(dtype)
    if source == "same":
        return np.array(numbers).astype(dtype)
    kind = source.removeprefix("jax ")
    if not wide or kind in ("other", "bool") or np.dtype(kind).kind != np.dtype(dtype).kind:
        return None
    if kind == "float64":
        return np.array(numbers, np.float64).astype(np.float32)
    return np.array([oracle.saturated(n, dtype) for n in numbers]).astype(dtype)


def assert_raises(call, expected):
    """The call is refused with a sentence."""
    caught = None
    try:
        found = call()
    except expected as error:
        caught = str(error)
    assert caught is not None, f"no {expected.__name__}, but {np.asarray(found.texels)[:, 0]}"
    assert caught.startswith("surface_"), f"an error without the name of the function: {caught}"
    return 1
