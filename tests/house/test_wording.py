"""The errors of public functions: each names the function that was called, arguments that it has, and what to pass.

A table holds calls that people write, with a part of each sentence. A sweep goes over all functions and arguments.
"""

import functools
import re
import warnings
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import jaxtex as jt
import jaxtex.layers.equinox
from jaxtex import cuda
from tests.house.public_api import FOLDER, parameters_of
from tests.house.public_calls import CALLS, EAGER, TEXTURE, public_functions

FUNCTIONS = public_functions()
MOST_LETTERS = 450
# What messages call by a keyword: the arguments of the function, the fields of its sampler, and those of other calls.
SUBJECT = re.compile(r"\w+: (\w+)(?:\[\d+\])? (?:is|are|has|have|holds|was|came)\b")
CALL = re.compile(r"([\w.]+)\(([^()]*)\)")
KEYWORD = re.compile(r"\b(?!jax_)(\w+)=(?!=)")


def consumed(value):
    """The arrays of a result. A context is entered."""
    if hasattr(value, "__enter__"):
        with value:
            return None
    arrays = [leaf for leaf in jax.tree.leaves(value) if isinstance(leaf, np.ndarray | jax.Array)]
    return [array for array in arrays if array.dtype.kind not in "OU"]


def fault_of(name, keywords):
    """What is wrong with the error of a call, if it raises one."""
    leaves, structure = jax.tree.flatten(keywords, is_leaf=is_struct)
    traced = {k: leaf for k, leaf in enumerate(leaves) if is_struct(leaf)}

    def call(traced):
        given = jax.tree.unflatten(structure, [traced.get(k, leaf) for k, leaf in enumerate(leaves)])
        return consumed(FUNCTIONS[name](**given))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name in EAGER:
                made = FUNCTIONS[name](**keywords)
                if isinstance(made, Iterator):
                    next(made)
            else:
                jax.eval_shape(call, traced)
    except (TypeError, ValueError, *documented(name)) as error:
        return fault_in(name, str(error))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def is_struct(value):
    return isinstance(value, jax.ShapeDtypeStruct)


def documented(name):
    """Errors of other kinds that the docstring names."""
    return [NotImplementedError] if "NotImplementedError" in FUNCTIONS[name].__doc__ else []


def fault_in(name, message):
    called = name.rpartition(".")[2]
    names = {*parameters_of(FUNCTIONS[name])}
    if re.match(rf"{called}(\.__(init|new)__)?\(\)", message):  # Python's own words on keywords
        return None
    if not message.startswith(f"{called}: "):
        return f"another name: {message}"
    if "\n" in message or len(message) > MOST_LETTERS or not message.endswith("."):
        return f"no short sentence: {message}"
    if "expected" not in message and "; " not in message:
        return f"neither what was expected nor what to do: {message}"
    subject = SUBJECT.match(message)
    if subject and subject[1] not in names | {"there"}:
        return f"no argument {subject[1]}: {message}"
    if "sampler" in names:
        names |= {*parameters_of(jt.Sampler)}
    for call, arguments in CALL.findall(message):
        if call.startswith("jaxtex."):
            missing = {*KEYWORD.findall(arguments)} - {*parameters_of(FUNCTIONS[call.removeprefix("jaxtex.")])}
            if missing:
                return f"no argument {missing} of {call}: {message}"
    missing = {*KEYWORD.findall(CALL.sub("", message))} - names
    return f"no argument {missing}: {message}" if missing else None


@pytest.fixture(autouse=True, scope="module")
def whole_tracebacks():
    """JAX takes longer to cut its own lines from a traceback than a call takes to raise an error."""
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    yield
    jax.config.update("jax_traceback_filtering", before)


TRACED = jax.ShapeDtypeStruct((), np.int32)
WRONG = {
    "a word": "no",
    "nothing": None,
    "an empty list": [],
    "words": ["a", "b"],
    "a pair of nothing": [None, None],
    "a complex array": np.zeros((2, 2), np.complex64),
    "strange sizes": np.zeros((5, 11, 13), np.float32),
    "many axes": np.zeros((1,) * 7, np.float32),
    "no elements": np.zeros((0, 0, 0), np.float32),
    "a traced integer": TRACED,
    "a traced pair": (TRACED, TRACED),
    "a negative number": -1,
    "no number": float("nan"),
    "a dictionary": {"a": 1},
    "an object": object(),
    "a texture": TEXTURE,
    "a sampler": jt.Sampler(),
    "a picture": Image.new("RGB", (9, 6)),
}
# Arguments that go on to a function of the caller, which raises what it likes.
PASSED_ON = ("extra_arguments", "extra_keywords")
# Arguments that may be an array of any sizes, and so of 7 axes or without elements, are options.
SIZES = ("many axes", "no elements")
DTYPES = (jnp.bfloat16, np.complex64, np.uint8, np.int32, bool)
# What a caller has in place of an array.
NEARLY = {str(dtype): functools.partial(jnp.asarray, dtype=dtype) for dtype in DTYPES}
NEARLY |= {"lists": np.ndarray.tolist, "words": lambda a: np.full(a.shape, "a")}
NEARLY |= {"objects": lambda a: np.full(a.shape, None)}
# An array of another library, such as torch, of which NumPy makes one.
MEMBERS = {"__array__": lambda self, *_, **__: self.array, "__getitem__": lambda self, k: self.array[k]}
NEARLY["tensors"] = lambda a: type("Tensor", (), {**MEMBERS, "array": a, "shape": a.shape, "dtype": "torch.float32"})()


def nearly(value):
    """What is nearly the right value of an argument, of a texture or of arrays, by what is wrong with it."""
    if isinstance(value, jt.Texture):
        cast = lambda dtype: jt.Texture(jnp.asarray(value.texels).astype(dtype), value.border_color, value.kind)
        yield from ((f"texels of {dtype}", cast(dtype)) for dtype in DTYPES)
    elif (leaves := jax.tree.leaves(value)) and all(isinstance(leaf, np.ndarray) for leaf in leaves):
        yield from ((kind, jax.tree.map(change, value)) for kind, change in NEARLY.items())
        parts = isinstance(value, tuple | list)
        yield "one more", (*value, value[0]) if parts else value[None]
        yield "one less", value[:-1] if parts else value[0]
        if isinstance(value, tuple) and len({a.shape for a in value}) == 1:
            yield "one array of all", np.stack(value, -1)


def wrong_calls(name):
    """Of each call what is wrong with it, and its arguments: another value for one of them, or a keyword."""
    base, parameters = CALLS[name], parameters_of(FUNCTIONS[name])
    for argument, parameter in parameters.items():
        if argument in PASSED_ON or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        for kind, value in WRONG.items():
            is_of_caller = name in EAGER and "traced" in kind  # an iterator over tiles is not traced
            option = parameter.default is not parameter.empty
            if not is_of_caller and not (option and kind in SIZES) and value is not parameter.default:
                yield f"{argument}, {kind}", base | {argument: value}
        for kind, value in nearly(base.get(argument)):
            yield f"{argument}, {kind}", base | {argument: value}
    yield "a keyword", base | {"swirl": 1}


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_name_the_function_and_its_arguments(name):
    faults = [(wrong, fault) for wrong, keywords in wrong_calls(name) if (fault := fault_of(name, keywords))]
    assert not faults, faults


# The table. Each row is a call, and a part of its error.

ROWS = re.findall(r"^>>> (.*)\n(.*)$", (FOLDER / "errors.txt").read_text(), re.MULTILINE)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def names():
    """What calls of the table are made of."""
    warp, nn, ndimage, normal = jt.warp, jt.nn, jt.ndimage, zeros
    IMAGE, PLAIN, SMALL, VOLUME = zeros(24, 32, 3), zeros(4, 6, 3), zeros(4, 5, 2), zeros(3, 4, 5, 2)
    LABELS, MAPS, MAP = np.zeros((4, 5, 1), np.int32), zeros(1, 4, 5, 2), zeros(2, 4, 4, 2)
    X, Y, U, ROWS, CENTER, UP = zeros(24, 32), zeros(24, 32), zeros(3), zeros(3, 2), (0.5, 0.5), (0.0, 1.0, 0.0)
    CAMERA, BYTES = np.float32([[30, 0, 16], [0, 30, 12], [0, 0, 1]]), jt.Sampler(read_mode="normalized_float")
    TEXTURE, TINY, LINE = jt.texture2d(zeros(5, 7, 3)), jt.texture2d(zeros(2, 3, 1)), jt.texture1d(zeros(4, 1))
    LAYERED, CUBE = jt.texture2d_layered(zeros(4, 5, 7, 3)), jt.cubemap(zeros(6, 4, 4, 1))
    CHAIN = jt.build_mipmaps(jt.texture2d(zeros(4, 6, 2)))
    ATTENTION, LEVELS, STORED = (zeros(1, 6, 2, 4), zeros(1, 5, 2, 2, 3, 2), zeros(1, 5, 2, 2, 3)), ((1, 2), (2, 2)), 6
    KERNEL, OFFSETS, BOXES = zeros(3, 3, 2, 2), zeros(2, 2, 2, 18), zeros(3, 4)
    GEOMETRY = np.zeros(3), np.ones(3), np.eye(3)
    GRID = nn.MultiresolutionGrid(ndim=2, num_levels=1, base_resolution=2)
    SPACE = nn.MultiresolutionGrid(num_levels=1, base_resolution=2)
    symbolic = lambda shape: jax.ShapeDtypeStruct(jax.export.symbolic_shape(shape), np.float32)
    return {"jax": jax, "jt": jt, "np": np, "jnp": jnp, "Image": Image} | cuda_names() | locals()


def cuda_names():
    """What calls of `jaxtex.cuda` are made of."""
    FLOAT, MEMORY, FOUR = cuda.createChannelDesc("float"), zeros(64), zeros(4)
    ARRAY, PAIRS = cuda.mallocArray(FLOAT, 4, 2), cuda.mallocArray(cuda.createChannelDesc("float2"), 4, 3)
    PITCHED, CUDA_VOLUME = cuda.PitchedPtr(FOUR, 8, 2, 2), cuda.malloc3DArray(FLOAT, (4, 3, 2))
    SURFACE = cuda.mallocArray(FLOAT, 8, 8, cuda.ArrayFlags.SurfaceLoadStore)
    MIPMAP = cuda.mallocMipmappedArray(FLOAT, (8, 8, 0), 2, cuda.ArrayFlags.SurfaceLoadStore)
    texture = lambda resource: cuda.createTextureObject(resource, cuda.TextureDesc())
    OBJECT, FETCHED = texture(cuda.ResourceDesc.Array(ARRAY)), texture(cuda.ResourceDesc.Linear(FOUR))
    GATHERED = texture(cuda.ResourceDesc.Array(cuda.mallocArray(FLOAT, 4, 2, cuda.ArrayFlags.TextureGather)))
    return {"cuda": cuda} | locals()


def test_the_error_of_a_call_says_what_was_expected():
    scope, faults = names(), []
    for call, words in ROWS:
        try:
            eval(call, scope)
        except (TypeError, ValueError, cuda.CudaError) as error:
            code, text = error.args if isinstance(error, cuda.CudaError) else ("", str(error))
            message = text.split("\n")[0]
            named = re.search(rf"\b{message.split(': ')[0]}\(", call)
            said = words in f"{type(error).__name__} {code}".rstrip() + f": {message}"
            faults += [] if said and message.endswith(".") and named else [(call, message)]
        else:
            faults.append((call, "no error"))
    assert not faults, faults


def test_the_table_is_sorted_and_names_each_call_once():
    assert sorted(dict(ROWS).items()) == ROWS
