"""Signatures of public functions as their authors wrote them, for `help`."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, cast


class Written(str):
    """An annotation as it is written; it is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class AsWritten(inspect.Signature):
    """A signature whose text has annotations as they are written, such as ``ArrayLike``, and not the unions they name.

    They are read from the source when the text is asked for. The annotations of `parameters` are what they mean.
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

    def replace(self, **changes: Any) -> "AsWritten":
        found = super().replace(**changes)
        found._source = self._source
        return found

    def __str__(self) -> str:
        return str(self.as_written())

    def format(self, **how: Any) -> str:
        """The text from Python 3.13 on."""
        return cast(Any, self.as_written()).format(**how)

    def as_written(self) -> inspect.Signature:
        """A signature with the annotations of the source, if there is one."""
        parameters, returned = [*self.parameters.values()], self.return_annotation
        try:
            (written,) = ast.parse(textwrap.dedent(inspect.getsource(self._source))).body
        except (OSError, SyntaxError, TypeError, ValueError):
            return inspect.Signature(parameters, return_annotation=returned)
        # The annotations of the fields of a class, or of the arguments of a function and its result.
        if isinstance(written, ast.ClassDef):
            fields = (line for line in written.body if isinstance(line, ast.AnnAssign))
            texts = {ast.unparse(field.target): ast.unparse(field.annotation) for field in fields}
        else:
            assert isinstance(written, ast.FunctionDef)
            texts = {a.arg: ast.unparse(a.annotation) for a in arguments_of(written) if a.annotation is not None}
            returned = returned if written.returns is None else Written(ast.unparse(written.returns))
        shown = [p.replace(annotation=Written(texts[p.name])) if p.name in texts else p for p in parameters]
        return inspect.Signature(shown, return_annotation=returned)


def arguments_of(function: ast.FunctionDef) -> list[ast.arg]:
    """The arguments of a function, those behind stars, too."""
    given = function.args
    every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    return [argument for argument in every if argument is not None]
