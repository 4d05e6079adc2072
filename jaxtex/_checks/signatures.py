"""Signatures of public functions as their authors wrote them, for `help` and the tooltips of notebooks."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from types import MappingProxyType
from typing import Any


class Written(str):
    """An annotation as it is written; it is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class AsWritten(inspect.Signature):
    """A signature that shows annotations as they are written, such as ``ArrayLike``, and not as the unions they name.

    They are read from the source when they are first asked for.
    """

    __slots__ = ("_source",)

    @classmethod
    def of(cls, function: Callable[..., Any], source: Any = None) -> "AsWritten":
        """The signature of a function.

        Args:
            source: the class whose fields the function takes, if it has no source of its own.
        """
        plain = inspect.signature(function)
        found = cls([*plain.parameters.values()], return_annotation=plain.return_annotation)
        found._source = source or function
        return found

    @property
    def parameters(self) -> MappingProxyType[str, inspect.Parameter]:
        self.read_source()
        return super().parameters

    @property
    def return_annotation(self) -> Any:
        self.read_source()
        return super().return_annotation

    def read_source(self) -> None:
        """Puts the annotations of the source in place of what they mean, once, and if there is a source."""
        source, self._source = getattr(self, "_source", None), None
        if source is None:
            return
        try:
            (written,) = ast.parse(textwrap.dedent(inspect.getsource(source))).body
        except (OSError, SyntaxError, TypeError, ValueError):
            return
        # The annotations of the fields of a class, or of the arguments of a function and its result.
        returned = super().return_annotation
        if isinstance(written, ast.ClassDef):
            fields = (line for line in written.body if isinstance(line, ast.AnnAssign))
            texts = {ast.unparse(field.target): ast.unparse(field.annotation) for field in fields}
        else:
            assert isinstance(written, ast.FunctionDef)
            texts = {a.arg: ast.unparse(a.annotation) for a in arguments_of(written) if a.annotation is not None}
            returned = returned if written.returns is None else Written(ast.unparse(written.returns))
        plain = super().parameters.items()
        shown = [p.replace(annotation=Written(texts[name])) if name in texts else p for name, p in plain]
        inspect.Signature.__init__(self, shown, return_annotation=returned)


def arguments_of(function: ast.FunctionDef) -> list[ast.arg]:
    """The arguments of a function, those behind stars, too."""
    given = function.args
    every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    return [argument for argument in every if argument is not None]
