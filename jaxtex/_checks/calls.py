"""The decorator of public functions: it checks each argument, and compiles calls.

The annotation of a parameter tells the sort of its values. Sorts are checked before anything else.
"""

import enum
import functools
import inspect
import itertools
import warnings
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import Any, ParamSpec, TypeVar, cast, get_args, get_origin, overload

import jax
import jax.numpy as jnp
import numpy as np

from .._jax.calls import StaticFunction, typed_jit
from .former_names import RENAMED, level_of_caller, under_new_names
from .numbers import Array, at_full_width, check_is_known, in_dtype_of_jax, is_integral
from .signatures import AsWritten
from .words import check_keywords, described, shown

# Keywords of other libraries, and ours; the first that a function has is meant.
KEYWORDS = {
    **dict.fromkeys(("filter", "interpolation", "method", "mode", "order", "resample"), "filter_mode"),
    **dict.fromkeys(("address", "padding_mode", "border_mode", "borderMode", "wrap"), "address_mode"),
    **dict.fromkeys(
        ("border_color", "border_value", "borderValue", "cval", "fill", "fill_value", "fillcolor", "color"),
        "border_color",
    ),
    **dict.fromkeys(("size", "shape", "dsize", "out_shape", "out_size"), "output_shape"),
    **dict.fromkeys(("scale", "scale_factor", "fx", "fy"), "output_shape"),
    **dict.fromkeys(("degrees", "theta"), "angle"),
    **dict.fromkeys(("M", "H", "transform", "homography"), "matrix"),
    **dict.fromkeys(("K", "camera", "cameraMatrix"), "camera_matrix"),
    **dict.fromkeys(("D", "distCoeffs", "coefficients"), "distortion"),
    **dict.fromkeys(("img", "src", "images", "input", "inputs"), "image"),
    **dict.fromkeys(("anti_alias", "anti_aliasing"), "antialias"),
}
# Remedies for keywords whose value differs from ours.
IN_PLACE_OF = {
    **dict.fromkeys(("size", "dsize"), "output_shape=(height, width), which is (width, height) in OpenCV and Pillow"),
    **dict.fromkeys(("scale", "scale_factor", "fx", "fy"), "output_shape=(height, width), the sizes times the factor"),
}
# Remedies for functions that take a sampler but not the keyword.
BY_OTHERS = {
    "filter_mode": "sampler=jaxtex.Sampler(filter_mode=...)",
    "address_mode": "sampler=jaxtex.Sampler(address_mode=...)",
    "border_color": "the border color to the texture, jaxtex.texture2d(texels, border_color=...)",
}
# Arguments for which a string is the name of a file.
FILES = ("image", "texels", "texture")
NUMBERS = "a number or an array; pass one"


def keyword_remedy(keyword: str, names: Collection[str]) -> str | None:
    """The remedy for a wrong keyword, if one is known."""
    meant = KEYWORDS.get(keyword, keyword)
    if meant in names:
        return f"pass {IN_PLACE_OF.get(keyword, f'{meant}=...')}"
    for kind in OWN_CHECKS:  # an option of a class of ours
        if (argument := kind.__name__.lower()) in names and keyword in inspect.signature(kind).parameters:
            return f"pass {argument}=jaxtex.{kind.__name__}({keyword}=...)"
    if meant in BY_OTHERS and ("sampler" in names if meant != "border_color" else {"texture", "textures"} & {*names}):
        return f"pass {BY_OTHERS[meant]}"
    return None


def in_place_of_string(argument: str, text: str | bytes) -> str:
    """The expected value in place of a string, and a remedy."""
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


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

NONE: Mapping[str, str] = MappingProxyType({})
# The annotations of flags; `None` is false.
FLAGS = (bool, bool | None)


# Classes of ours, above this layer, and the checks of their values: of the name of a function, a value, the function's
# parameters that it may be meant for, and the argument. `Sampler` enters itself.
OWN_CHECKS: dict[type, Callable[[str, object, Collection[str], str], None]] = {}


class Sort(enum.Enum):
    """A sort of values of a parameter."""

    FLAG = "True or False"
    OWN = "of a class with a check of its own: a sampler"
    ARRAYS = "an array, a number, or several of them"
    MAPS = "arrays, numbers and functions"
    TUPLE = "a tuple of arrays, such as coordinates"
    STATIC = "what is known while tracing: numbers and words"
    OTHER = "a texture, a function, or anything else"


# The sorts that hold arrays.
OF_ARRAYS = (Sort.ARRAYS, Sort.TUPLE, Sort.MAPS)
# The classes of static arguments, beside words of a `Literal`.
STATIC_TYPES = (bool, int, float, str, NoneType, np.generic, np.ndarray)

# Arguments that are one array each.
SINGLE = ("image", "faces", "labels", "border_label")
# Arguments whose integers are texels or indices, and not coordinates or parameters.
IMAGES = (*SINGLE, "features", "value", "x", "pyramid", "planes", "batch_indices")
# Arguments with an array or `None` for each axis.
OF_AXES = ("knots",)
PLAIN = (bool, int, float, complex)
# What a program takes.
KNOWN = (jax.Array, np.ndarray, np.generic, StaticFunction, *PLAIN)
# NumPy asks for large pages for arrays of so many bytes; see `placed`.
LARGE_PAGES, ALIGNMENT = 2**22, 64
# An object with the first attribute becomes an array of JAX, one with another attribute an array of NumPy.
OF_JAX, OF_NUMPY = "__jax_array__", ("__array__", "__array_interface__")


def sort_of(annotation: object) -> Sort:
    """The sort of a parameter with this annotation."""
    if annotation in FLAGS:
        return Sort.FLAG
    held = {*parts_of(annotation)}
    if not held.isdisjoint(OWN_CHECKS):
        return Sort.OWN
    if jax.Array in held and Callable in held:
        return Sort.MAPS
    if jax.Array in held and str not in held:
        options = [option for option in (get_args(annotation) or (annotation,)) if option is not NoneType]
        tuples = get_origin(annotation) is tuple or all(get_origin(option) is tuple for option in options)
        return Sort.TUPLE if tuples else Sort.ARRAYS
    is_static = all(isinstance(part, type) and issubclass(part, STATIC_TYPES) for part in held)
    return Sort.STATIC if is_static else Sort.OTHER


def own_check(annotation: object) -> Callable[[str, object, Collection[str], str], None]:
    """The check of the class of ours in an annotation."""
    held = {*parts_of(annotation)}
    return next(check for kind, check in OWN_CHECKS.items() if kind in held)


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


@overload
def public(function: Callable[Parameters, Result], /) -> Callable[Parameters, Result]: ...


@overload
def public(
    *, compiled: bool = False, called: str | None = None, deprecated: Mapping[str, str] = NONE
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]: ...


def public(
    function: Any = None,
    /,
    *,
    compiled: bool = False,
    called: str | None = None,
    deprecated: Mapping[str, str] = NONE,
) -> Any:
    """A decorator of public functions.

    An unknown keyword, or an argument of another sort than its parameter, raises a TypeError with a remedy. Former
    names of arguments warn. NumPy arrays are converted to the byte order of the machine.

    Args:
        compiled: whether each call outside `jax.jit` is compiled as one program. Parameters that take no arrays are
            static. Lists, NumPy numbers and concrete arrays become hashable Python values there.
        called: its name in errors; for a constructor, the class.
        deprecated: arguments that warn wherever they are given, and what the warning says of each.
    """
    if function is None:
        return functools.partial(public, compiled=compiled, called=called, deprecated=deprecated)
    name, signature = called or function.__name__, inspect.signature(function)
    parameters = signature.parameters
    sorts = {p.name: sort_of(p.annotation) for p in parameters.values()}
    own_checks = {key: own_check(parameters[key].annotation) for key, sort in sorts.items() if sort is Sort.OWN}
    static = [key for key, sort in sorts.items() if sort not in OF_ARRAYS]
    run = typed_jit(*static)(function) if compiled else function
    names = [argument for argument in parameters if argument != "self"]
    renamed = {old: new for old, new in RENAMED.items() if new in parameters and old not in parameters}
    remedy = functools.partial(keyword_remedy, names=names)
    positional = [key for key, p in parameters.items() if p.kind is not p.KEYWORD_ONLY]
    # If the next parameter takes arrays too, a missing tuple cannot be detected.
    arrays = [sorts[key] in OF_ARRAYS for key in positional]
    tuples = [k for k, key in enumerate(positional) if sorts[key] is Sort.TUPLE and not any(arrays[k + 1 : k + 2])]

    required = [key for key in names if parameters[key].default is inspect.Parameter.empty]

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if not renamed.keys().isdisjoint(keywords):
            keywords = under_new_names(name, renamed, keywords)
        check_keywords(name, keywords, names, remedy)
        for number in tuples:
            check_is_together(name, args, positional, number)
        given: dict[str, Any] = dict(zip(positional, args))
        if len(args) > len(positional) or not given.keys().isdisjoint(keywords):
            refuse(name, signature, names, args, keywords)
        given.update(keywords)
        if not all(key in given for key in required):
            refuse(name, signature, names, args, keywords)
        for argument, saying in deprecated.items():
            if given.get(argument) is not None:
                warnings.warn(f"{name}: {argument} {saying}.", DeprecationWarning, stacklevel=level_of_caller(2))
        for argument, value in given.items():
            sort = sorts[argument]
            if argument == "self":
                continue
            if value is not parameters[argument].default:
                if sort is Sort.OWN:
                    own_checks[argument](name, value, parameters if argument == "sampler" else (), argument)
                else:
                    check_sort(name, argument, value, sort)
            if sort is Sort.FLAG:
                is_given = value is not None or parameters[argument].annotation is bool
                given[argument] = as_flag(name, argument, value) if is_given else value
            else:
                value = in_native_order(with_static_functions(value) if sort is Sort.MAPS else value)
                if compiled:
                    value = prepared(name, argument, value, argument in static)
                elif argument in SINGLE and sort is Sort.ARRAYS:
                    # A function that is not compiled as one program would cut integers to 32 bits later.
                    value = in_dtype_of_jax(name, argument, at_full_width(name, argument, value, exact=True))
                given[argument] = value
        front = [given.pop(key) for key in [*itertools.takewhile(given.__contains__, positional)]]
        return run(*front, **given)

    vars(call)["__signature__"] = AsWritten.of(signature, function)
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


def check_sort(name: str, argument: str, value: object, sort: Sort) -> None:
    """Raises a TypeError for a value of another sort."""
    if sort is Sort.TUPLE and (value is None or isinstance(value, str | bytes)):
        raise TypeError(f"{name}: {argument} is {shown(value)}, expected a tuple of arrays such as (x, y); pass one.")
    if sort in OF_ARRAYS:
        check_operand(name, argument, value, sort is Sort.MAPS)
    elif sort is Sort.STATIC:
        for leaf in leaves_of(value):
            check_is_known(name, argument, leaf)


def check_is_together(name: str, args: Sequence[object], parameters: Sequence[str], number: int) -> None:
    """Raises a TypeError for coordinates that are passed one by one, and not as one tuple.

    Args:
        parameters: the positional ones.
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


def as_flag(name: str, argument: str, value: object) -> bool:
    """A flag that is known while tracing: a bool of Python or NumPy, alone or as an array without axes."""
    check_is_known(name, argument, value)
    if isinstance(value, bool) or (getattr(value, "dtype", None) == np.bool_ and getattr(value, "shape", None) == ()):
        return bool(value)
    raise TypeError(f"{name}: {argument} is {shown(value)}, expected True or False.")


# Values


def check_operand(name: str, argument: str, value: object, with_functions: bool = False) -> None:
    """Checks for an array, a number, or lists and tuples of them; the TypeError says what to pass.

    Args:
        with_functions: whether functions may be among them.
    """
    if isinstance(value, jax.Array):
        return
    if argument in IMAGES:
        check_is_no_nest(name, argument, value)
    for leaf in leaves_of(value):
        if with_functions and callable(leaf):
            continue
        if not (isinstance(leaf, jax.Array) or type(leaf) in PLAIN or (leaf is None and argument in OF_AXES)):
            check_leaf(name, f"{argument} {'is' if leaf is value else 'holds'}", argument, leaf)
    if argument in SINGLE:
        check_is_one_array(name, argument, value)


def leaves_of(value: object) -> Sequence[object]:
    """The entries of lists and tuples, or the value itself."""
    if not isinstance(value, list | tuple):
        return (value,)
    parts = cast("Sequence[object]", value)
    if not any(isinstance(part, list | tuple) for part in parts):
        return parts
    return [leaf for part in parts for leaf in leaves_of(part)]


def check_leaf(name: str, came: str, argument: str, leaf: object) -> None:
    """Checks for an array, a number, or an object that NumPy or JAX can convert; `came` begins the error message."""
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
    """Whether a NumPy array holds numbers or bool; objects may be Python integers of any size."""
    if array.dtype == object:
        return is_integral(array)
    return jnp.issubdtype(array.dtype, jnp.number) or array.dtype == np.bool_


def with_static_functions(value: Any) -> Any:
    """Functions in lists and tuples as trees without leaves, so that a program takes them beside arrays."""
    if isinstance(value, list | tuple):
        return tuple(with_static_functions(part) for part in cast("Sequence[object]", value))
    return StaticFunction(value) if callable(value) else value


def becomes_array(value: object) -> bool:
    """Whether JAX or NumPy converts an object to an array, such as a Pillow image, a torch tensor or a fraction."""
    return not isinstance(value, type) and any(hasattr(value, name) for name in (OF_JAX, *OF_NUMPY, "__float__"))


def check_is_of_arrays(name: str, argument: str, value: object) -> None:
    """Raises a TypeError for numbers and arrays of libraries other than NumPy and JAX."""
    for leaf in leaves_of(value):
        if not (leaf is None or isinstance(leaf, KNOWN) or hasattr(leaf, OF_JAX)):
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
    leaves = leaves_of(cast(object, value)) if isinstance(value, list | tuple) else ()
    if any(isinstance(leaf, jax.Array | np.ndarray) for leaf in leaves):
        kind = "list" if isinstance(value, list) else "tuple"
        raise TypeError(f"{name}: {argument} is a {kind} of arrays, expected an array; pass jnp.stack({argument}).")


def in_native_order(value: Any) -> Any:
    """A value with its NumPy arrays in the byte order of the machine, the only one of JAX.

    Files of TIFF, FITS and NetCDF may give arrays of the other byte order.
    """
    if all(map(is_native, jax.tree.leaves(value))):
        return value

    def native(leaf: Any) -> Any:
        return leaf if is_native(leaf) else leaf.astype(leaf.dtype.newbyteorder("="))

    return jax.tree.map(native, value)


def is_native(leaf: Any) -> bool:
    return not isinstance(leaf, np.ndarray) or bool(cast(Array, leaf).dtype.isnative)


# Compiled calls


def prepared(name: str, argument: str, value: Any, is_static: bool) -> Any:
    """An argument for a compiled function."""
    if is_static:
        return as_static(name, argument, value)
    check_is_of_arrays(name, argument, value)
    return jax.tree.map(placed, at_full_width(name, argument, value, exact=argument in IMAGES))


def placed(leaf: Any) -> Any:
    """An argument of a compiled call; a large array of NumPy at a place where JAX on a CPU takes it without a copy.

    That is a multiple of `ALIGNMENT` bytes, where NumPy rarely puts an array. JAX's own copy takes four times as long
    as this one, because new memory of NumPy has large pages on Linux.
    """
    if not isinstance(leaf, np.ndarray):
        return leaf
    array = cast(Any, leaf)
    taken = array.ctypes.data % ALIGNMENT == 0 or jax.dtypes.canonicalize_dtype(array.dtype) != array.dtype
    if array.nbytes < LARGE_PAGES or taken or jax.default_backend() != "cpu":
        return array
    room = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def as_static(function: str, argument: str, value: Any) -> Any:
    """A number, a flag, or a sequence of them, as hashable Python values; any other value unchanged.

    Raises:
        TypeError: if the value is traced, or has no hash.
    """
    check_is_known(function, argument, value)
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        value = cast(Any, value).tolist()
    if isinstance(value, list | tuple):
        return tuple(as_static(function, argument, element) for element in cast(Sequence[Any], value))
    if not isinstance(value, Hashable):
        raise TypeError(
            f"{function}: {argument} is {shown(value)}, expected a number or a string; pass one, or a tuple."
        )
    return value


def check_function(name: str, argument: str, value: Any) -> None:
    """Something that can be called."""
    if not callable(value):
        raise TypeError(f"{name}: {argument} is {described(value)}, expected a function of arrays.")
