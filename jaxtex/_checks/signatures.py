"""Signatures of public functions as their authors wrote them, for `help`."""

import ast
import inspect
import textwrap
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
    def of(cls, signature: inspect.Signature, source: Any) -> "AsWritten":
        """A signature with the function that has it, or the class whose fields the function takes."""
        found = cls([*signature.parameters.values()], return_annotation=signature.return_annotation)
        found._source = source
        return found

    def replace(self, **changes: Any) -> "AsWritten":
        found = super().replace(**changes)
        found._source = getattr(self, "_source", None)
        return found

    def __str__(self) -> str:
        return str(self.as_written())

    def format(self, **how: Any) -> str:
        """The text from Python 3.13 on."""
        return cast(Any, self.as_written()).format(**how)

    def as_written(self) -> inspect.Signature:
        """A signature with the annotations of the source, if there is one."""
        parameters, returned = [*self.parameters.values()], self.return_annotation
        written = definition_of(getattr(self, "_source", None))
        texts = {} if written is None else annotations_in(written)
        if isinstance(written, ast.FunctionDef) and written.returns is not None:
            returned = Written(ast.unparse(written.returns))
        shown = [p.replace(annotation=Written(texts[p.name])) if p.name in texts else p for p in parameters]
        return inspect.Signature(shown, return_annotation=returned)


def definition_of(source: Any) -> ast.stmt | None:
    """The definition of a function or a class, from its source; `None` if there is none."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(source))).body[0]
    except (OSError, SyntaxError, TypeError, IndexError):
        return None


def annotations_in(definition: ast.stmt) -> dict[str, str]:
    """The annotations of the arguments of a function, or of the fields of a class, as they are written."""
    if isinstance(definition, ast.ClassDef):
        fields = (line for line in definition.body if isinstance(line, ast.AnnAssign))
        return {ast.unparse(field.target): ast.unparse(field.annotation) for field in fields}
    if not isinstance(definition, ast.FunctionDef):
        return {}
    given = definition.args
    every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    return {a.arg: ast.unparse(a.annotation) for a in every if a is not None and a.annotation is not None}
