"""The checks that all public functions share, and what to pass in place of arguments that no call takes.

The annotation of a parameter says what sort of value it takes. Each sort is checked here, before anything else.
"""

# pyright: strict, reportUnknownMemberType=false

import enum
import functools
import inspect
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, ParamSpec, TypeGuard, TypeVar, cast, get_args, get_origin

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..modes import AddressMode, FilterMode, OptionEnum
from ..sampler import Sampler
from .integers import in_native_order, is_integral
from .words import check_keywords, described, shown

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# Keywords of other libraries: what they mean here, by the first word that a function has.
KEYWORDS = {
    **dict.fromkeys(("filter", "filter_mode", "interpolation", "method", "mode", "order", "resample"), "filter"),
    **dict.fromkeys(("address", "address_mode", "padding_mode", "border_mode", "borderMode", "wrap"), "address"),
    **dict.fromkeys(
        ("border_color", "border_value", "borderValue", "cval", "fill", "fill_value", "fillcolor", "color"),
        "border_color",
    ),
    **dict.fromkeys(("size", "shape", "dsize", "out_shape", "out_size"), "output_shape"),
    **dict.fromkeys(("scale", "scale_factor", "fx", "fy"), "output_shape"),
    **dict.fromkeys(("angle", "theta"), "degrees"),
    **dict.fromkeys(("M", "H", "transform", "homography"), "matrix"),
    **dict.fromkeys(("K", "camera", "cameraMatrix"), "camera_matrix"),
    **dict.fromkeys(("D", "distCoeffs", "coefficients"), "distortion"),
    **dict.fromkeys(("img", "src", "images", "input", "inputs"), "image"),
    **dict.fromkeys(("anti_alias", "anti_aliasing"), "antialias"),
}
# What to pass where a keyword means something else than the name here.
IN_PLACE_OF = {
    **dict.fromkeys(("size", "dsize"), "output_shape=(height, width), which is (width, height) in OpenCV and Pillow"),
    **dict.fromkeys(("scale", "scale_factor", "fx", "fy"), "output_shape=(height, width), the sizes times the factor"),
}
# Where a function that takes a sampler has no such argument itself.
BY_OTHERS = {
    "filter": "sampler=jaxtex.Sampler(filter_mode=...)",
    "address": "sampler=jaxtex.Sampler(address_mode=...)",
    "border_color": "the border color to the texture, jaxtex.texture2d(texels, border_color=...)",
}
# The types of arguments that are true or false; `None` is false.
FLAGS = (bool, bool | None)
SAMPLER_FIELDS = tuple(inspect.signature(Sampler).parameters)
# Arguments that are one array each.
SINGLE = ("image", "faces", "labels", "border_label")
# Arguments whose integers are texels or indices, and not coordinates or parameters.
IMAGES = (*SINGLE, "features", "value", "x", "pyramid", "planes", "batch_indices")
# In place of these arguments, a string is the name of a file.
FILES = ("image", "texels", "texture")
NUMBERS = "a number or an array; pass one"
PLAIN = (bool, int, float, complex)
# An object with the first attribute becomes an array of JAX, one with another attribute an array of NumPy.
OF_JAX, OF_NUMPY = "__jax_array__", ("__array__", "__array_interface__")


class Sort(enum.Enum):
    """What a parameter takes."""

    FLAG = "True or False"
    SAMPLER = "a sampler"
    ARRAYS = "an array, a number, or several of them"
    TUPLE = "a tuple of arrays, such as coordinates"
    STATIC = "what is known while tracing: numbers and words"
    OTHER = "a texture, a function, or anything else"


# The classes of static arguments, beside words of a `Literal`.
STATIC_TYPES = (bool, int, float, str, NoneType, np.generic, np.ndarray)


def sort_of(annotation: object) -> Sort:
    """What a parameter with this annotation takes."""
    if annotation in FLAGS:
        return Sort.FLAG
    held = {*parts_of(annotation)}
    if Sampler in held:
        return Sort.SAMPLER
    if jax.Array in held:
        options = [option for option in (get_args(annotation) or (annotation,)) if option is not NoneType]
        tuples = get_origin(annotation) is tuple or all(get_origin(option) is tuple for option in options)
        return Sort.TUPLE if tuples else Sort.ARRAYS
    is_static = all(isinstance(part, type) and issubclass(part, STATIC_TYPES) for part in held)
    return Sort.STATIC if is_static else Sort.OTHER


def parts_of(annotation: object) -> Iterator[object]:
    """The classes in an annotation, down to the members of unions and the elements of sequences."""
    origin = get_origin(annotation)
    if origin is np.ndarray or not get_args(annotation):
        yield origin or annotation
    elif isinstance(origin, type) and issubclass(origin, Callable):
        yield origin
    else:
        for part in get_args(annotation):
            if part is not Ellipsis:
                yield from parts_of(part) if not isinstance(part, str | int) else (type(cast(object, part)),)


def public(
    function: Callable[Parameters, Result],
    prepared: Callable[[str, Any], Any] | None = None,
    called: str | None = None,
) -> Callable[Parameters, Result]:
    """A public function, whose arguments are checked before it is called.

    A keyword that it does not take, and an argument that is not of the sort of its parameter, raise a TypeError that
    says what to pass. Arrays of NumPy arrive in the byte order of the machine.

    Args:
        prepared: of the name and the value of an argument that is no flag, what the function gets.
        called: the name by which it is called; the class, of a method that makes its objects.
    """
    name, signature = called or function.__name__, inspect.signature(function)
    parameters = signature.parameters
    sorts = {p.name: sort_of(p.annotation) for p in parameters.values()}
    names = [argument for argument in parameters if argument != "self"]
    remedy = functools.partial(keyword_remedy, names=names)
    positional = [key for key, p in parameters.items() if p.kind is not p.KEYWORD_ONLY]
    # Where the parameter after a tuple takes arrays too, nothing tells that the tuple is missing.
    arrays = [sorts[key] in (Sort.ARRAYS, Sort.TUPLE) for key in positional]
    tuples = [k for k, key in enumerate(positional) if sorts[key] is Sort.TUPLE and not any(arrays[k + 1 : k + 2])]

    required = [key for key in names if parameters[key].default is inspect.Parameter.empty]

    @functools.wraps(function)
    def call(*args: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        check_keywords(name, keywords, names, remedy)
        for number in tuples:
            check_is_together(name, args, positional, number)
        given: dict[str, Any] = dict(zip(positional, args))
        if len(args) > len(positional) or not given.keys().isdisjoint(keywords):
            refuse(name, signature, names, args, keywords)
        given.update(keywords)
        if not all(key in given for key in required):
            refuse(name, signature, names, args, keywords)
        for argument, value in given.items():
            sort = sorts[argument]
            if argument == "self":
                continue
            if value is not parameters[argument].default:
                check_sort(name, argument, value, sort, parameters)
            if sort is Sort.FLAG:
                is_given = value is not None or parameters[argument].annotation is bool
                given[argument] = as_flag(name, argument, value) if is_given else value
            else:
                value = in_native_order(value)
                given[argument] = prepared(argument, value) if prepared else value
        front = [given.pop(key) for key in [*itertools.takewhile(given.__contains__, positional)]]
        return cast(Callable[..., Result], function)(*front, **given)

    return call


def refuse(
    name: str,
    signature: inspect.Signature,
    names: Collection[str],
    args: Sequence[object],
    keywords: Mapping[str, object],
) -> None:
    """Raises Python's error for arguments that do not fit a signature."""
    try:
        signature.bind(*args, **keywords)
    except TypeError as error:
        raise TypeError(f"{name}: {error}; the arguments are {', '.join(names)}.") from None


def check_sort(name: str, argument: str, value: object, sort: Sort, parameters: Collection[str]) -> None:
    """Raises a TypeError for a value that no parameter of this sort takes."""
    if sort is Sort.TUPLE and (value is None or isinstance(value, str | bytes)):
        raise TypeError(f"{name}: {argument} is {shown(value)}, expected a tuple of arrays such as (x, y); pass one.")
    if sort in (Sort.ARRAYS, Sort.TUPLE):
        check_operand(name, argument, value)
    elif sort is Sort.STATIC:
        for leaf in leaves_of(value):
            check_is_known(name, argument, leaf)
    elif sort is Sort.SAMPLER:
        check_is_sampler(name, value, parameters if argument == "sampler" else (), argument)


def check_is_together(name: str, args: Sequence[object], parameters: Sequence[str], number: int) -> None:
    """Raises a TypeError for coordinates that come one by one, where a function takes them as one tuple.

    Args:
        parameters: those that may come without their names.
        number: of the one that takes the tuple.
    """
    if len(args) > number + 1 and is_one(args[number]) and is_one(args[number + 1]):
        raise TypeError(
            f"{name}: {parameters[number]} is {shown(args[number])}, and another array follows; pass coordinates as "
            f"one tuple, {name}({', '.join((*parameters[:number], '(x, y)'))})."
        )


def is_one(value: object) -> bool:
    """Whether a value is one array or number."""
    return isinstance(value, jax.Array | np.ndarray | np.generic | int | float)


def check_is_sampler(name: str, sampler: object, parameters: Collection[str] = (), argument: str = "sampler") -> None:
    """Raises a TypeError for a value that is no `Sampler`.

    Args:
        parameters: of the function. The error names the one that takes the value.
        argument: the name of the sampler.
    """
    if isinstance(sampler, Sampler):
        return
    option, remedy = mode_of(sampler), "jaxtex.Sampler(...)"
    if option in parameters:
        remedy = f"{option}={sampler!r}"
    elif option is not None:
        remedy = f"jaxtex.Sampler({option}_mode={sampler!r})"
    elif isinstance(sampler, int) and "output_shape" in parameters:
        remedy = "sizes as one tuple, output_shape=(H, W)"
    elif is_array(sampler) and not {"coords", "flow"}.isdisjoint(parameters):
        remedy = f"coordinates as one tuple, {name}({next(iter(parameters))}, (x, y))"
    raise TypeError(f"{name}: {argument} is {shown(sampler)}, expected a Sampler; pass {remedy}.")


def as_flag(name: str, argument: str, value: object) -> bool:
    """A flag that is known while tracing: a bool of Python or NumPy, alone or as an array without axes."""
    check_is_known(name, argument, value)
    if isinstance(value, bool) or (getattr(value, "dtype", None) == np.bool_ and getattr(value, "shape", None) == ()):
        return bool(value)
    raise TypeError(f"{name}: {argument} is {shown(value)}, expected True or False.")


def check_is_known(name: str, argument: str, value: object) -> None:
    """Raises a TypeError for a value that JAX traces."""
    if isinstance(value, Tracer):
        raise TypeError(
            f"{name}: {argument} is a traced array, expected a value that is known during tracing; pass a Python "
            f"value, or make the argument static with jax.jit(..., static_argnames=...)."
        )


def keyword_remedy(keyword: str, names: Collection[str]) -> str | None:
    """What to pass in place of a keyword, if that is known."""
    meant = KEYWORDS.get(keyword, keyword)
    if meant in names:
        return f"pass {IN_PLACE_OF.get(keyword, f'{meant}=...')}"
    if "sampler" in names and keyword in SAMPLER_FIELDS:
        return f"pass sampler=jaxtex.Sampler({keyword}=...)"
    if meant in BY_OTHERS and ("sampler" in names if meant != "border_color" else {"texture", "textures"} & {*names}):
        return f"pass {BY_OTHERS[meant]}"
    return None


def mode_of(word: object) -> str | None:
    """The option of a sampler that a word names, its aliases included."""
    options: dict[str, type[OptionEnum]] = {"filter": FilterMode, "address": AddressMode}
    for option, enumeration in options.items():
        try:
            enumeration(word)
        except ValueError:
            continue
        return option
    return None


# Arrays


def check_operand(name: str, argument: str, value: object) -> None:
    """An array, a number, or lists and tuples of them.

    Raises:
        TypeError: says what to pass.
    """
    if isinstance(value, jax.Array):
        return
    if argument in IMAGES:
        check_is_no_nest(name, argument, value)
    for leaf in leaves_of(value):
        if not (isinstance(leaf, jax.Array) or type(leaf) in PLAIN):
            check_leaf(name, f"{argument} {'is' if leaf is value else 'holds'}", argument, leaf)
    if argument in SINGLE:
        check_is_one_array(name, argument, value)


def leaves_of(value: object) -> Sequence[object]:
    """What lists and tuples hold, or the value itself."""
    if not isinstance(value, list | tuple):
        return (value,)
    parts = cast("Sequence[object]", value)
    if not any(isinstance(part, list | tuple) for part in parts):
        return parts
    return [leaf for part in parts for leaf in leaves_of(part)]


def check_leaf(name: str, came: str, argument: str, leaf: object) -> None:
    """An array, a number, or an object that NumPy or JAX makes an array of; `came` begins the error message."""
    if isinstance(leaf, str | bytes):
        raise TypeError(f"{name}: {came} {leaf!r}, expected {in_place_of_string(argument, leaf)}.")
    if isinstance(leaf, np.ndarray | np.generic):
        if not holds_numbers(cast(Any, leaf)):
            raise TypeError(
                f"{name}: {argument} holds {leaf.dtype}, expected numbers; convert it with {argument}.astype."
            )
    elif not isinstance(leaf, PLAIN) and not becomes_array(leaf):
        raise TypeError(f"{name}: {came} {described(leaf)}, expected {NUMBERS}.")


def holds_numbers(array: np.ndarray | np.generic) -> bool:
    """Whether an array of NumPy holds numbers or bool; Python's integers are numbers of any size."""
    if array.dtype == object:
        return is_integral(array)
    return jnp.issubdtype(array.dtype, jnp.number) or array.dtype == np.bool_


def is_array(value: object) -> TypeGuard[jax.Array | np.ndarray[Any, np.dtype[Any]]]:
    return isinstance(value, jax.Array | np.ndarray)


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value is a tuple or a list."""
    return isinstance(value, tuple | list)


def becomes_array(value: object) -> bool:
    """Whether JAX or NumPy makes an array of an object, as of a Pillow image, a torch tensor or a fraction."""
    return not isinstance(value, type) and any(hasattr(value, name) for name in (OF_JAX, *OF_NUMPY, "__float__"))


def in_place_of_string(argument: str, text: str | bytes) -> str:
    """What a string should have been, and how to mend it."""
    if argument == "border_color":
        return (
            "a number, or one for each channel, in units of the image; pass 1.0 for the white of fractions, 255 for "
            "that of bytes, (r, g, b) for a color"
        )
    if argument in FILES:
        return f"an array; read the file first, such as {argument} = numpy.asarray(PIL.Image.open(...))"
    try:
        return f"a number or an array; pass {float(text):g}"
    except ValueError:
        return NUMBERS


def check_is_of_arrays(name: str, argument: str, value: object) -> None:
    """Raises a TypeError for numbers and arrays of libraries beside NumPy and JAX."""
    for leaf in leaves_of(value):
        if not (leaf is None or isinstance(leaf, (jax.Array, np.ndarray, np.generic, *PLAIN)) or hasattr(leaf, OF_JAX)):
            makes_array = any(hasattr(leaf, key) for key in OF_NUMPY)
            kind = f"{described(leaf)} of {type(leaf).__module__.partition('.')[0]}"
            remedy = f"an array; pass numpy.asarray({argument})" if makes_array else f"a number; pass float({argument})"
            raise TypeError(f"{name}: {argument} is {kind}, expected {remedy}.")


def check_is_no_nest(name: str, argument: str, value: object) -> None:
    """Raises a TypeError for a nested list of numbers."""
    leaves = leaves_of(cast(object, value)) if isinstance(value, list | tuple) else ()
    if leaves and all(isinstance(leaf, bool | int | float) for leaf in leaves):
        kind = "list" if isinstance(value, list) else "tuple"
        raise TypeError(
            f"{name}: {argument} is a nested {kind} of numbers, expected an array; pass jnp.asarray({argument})."
        )


def check_is_one_array(name: str, argument: str, value: object) -> None:
    """Raises a TypeError for a list or tuple of arrays."""
    if isinstance(value, list | tuple) and any(map(is_array, leaves_of(cast(object, value)))):
        kind = "list" if isinstance(value, list) else "tuple"
        raise TypeError(f"{name}: {argument} is a {kind} of arrays, expected an array; pass jnp.stack({argument}).")
