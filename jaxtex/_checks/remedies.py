"""The checks that all public functions share, and what to pass in place of arguments that no call takes.

The annotation of a parameter says of which sort it is, and each sort is checked here, before anything else.
"""

# pyright: strict, reportUnknownMemberType=false

import enum
import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, ParamSpec, TypeVar, cast, get_args, get_origin

import jax
import numpy as np
from jax.core import Tracer

from ..modes import AddressMode, FilterMode, OptionEnum
from ..sampler import Sampler
from .integers import in_native_order
from .names import check_keywords as check_names
from .operands import check_operand, leaves_of
from .words import shown

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
    **dict.fromkeys(("angle", "theta"), "degrees"),
    **dict.fromkeys(("M", "H", "transform", "homography"), "matrix"),
    **dict.fromkeys(("K", "camera", "cameraMatrix"), "camera_matrix"),
    **dict.fromkeys(("D", "distCoeffs", "coefficients"), "distortion"),
    **dict.fromkeys(("img", "src", "images"), "image"),
    **dict.fromkeys(("anti_alias", "anti_aliasing"), "antialias"),
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
    """The classes in an annotation: of a union those of its members, of a sequence those of its elements."""
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
    """A function whose arguments are checked as those of all public functions are.

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
    positional = [key for key, p in parameters.items() if p.kind is not p.KEYWORD_ONLY]
    # Where the parameter after a tuple takes arrays too, nothing tells that the tuple is missing.
    arrays = [sorts[key] in (Sort.ARRAYS, Sort.TUPLE) for key in positional]
    tuples = [k for k, key in enumerate(positional) if sorts[key] is Sort.TUPLE and not any(arrays[k + 1 : k + 2])]

    required = [key for key in names if parameters[key].default is inspect.Parameter.empty]

    @functools.wraps(function)
    def call(*args: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        check_keywords(name, keywords, names)
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
        front = [given.pop(key) for key in positional[: leading(positional, given)]]
        return cast(Callable[..., Result], function)(*front, **given)

    return call


def leading(names: Sequence[str], given: Collection[str]) -> int:
    """How many of the first names are given."""
    return next((number for number, key in enumerate(names) if key not in given), len(names))


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
        parameters: of the function, of which the error names one that takes what came.
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


def check_keywords(name: str, keywords: Collection[str], names: Collection[str]) -> None:
    """Raises a TypeError with a remedy for a keyword that is not among `names`."""
    check_names(name, keywords, names, functools.partial(keyword_remedy, names=names))


def keyword_remedy(keyword: str, names: Collection[str]) -> str | None:
    """What to pass in place of a keyword, if that is known."""
    meant = KEYWORDS.get(keyword, keyword)
    if meant in names:
        return f"pass {meant}=..."
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


def check_color(name: str, color: jax.Array, channels: int, argument: str = "border_color") -> None:
    """A border color: one number for all channels, or one for each."""
    if color.shape not in ((), (channels,)):
        raise ValueError(
            f"{name}: {argument} has shape {color.shape}, expected a scalar or ({channels},), one value for each "
            f"channel."
        )
