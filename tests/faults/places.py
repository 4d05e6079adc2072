"""Where a source can be made wrong: each fault replaces one node of the syntax tree.

A fault is named by its file, the qualified name of its function (or of the variable that a module assigns), its kind,
and its number among the faults of this kind there. So it has the same name in another version of the file, as long as
that function did not change. There are none where no test could tell: in texts, types, assertions, and decorators.
"""

import ast
import collections
import itertools
from typing import NamedTuple


def pairs(text: str) -> dict[str, str]:
    return dict(pair.split() for pair in text.split(", "))


OTHERS = pairs(
    "Add Sub, Sub Add, Mult Add, Div Mult, FloorDiv Mult, MatMult Mult, Mod FloorDiv, Pow Mult, LShift RShift, "
    "RShift LShift, BitAnd BitOr, BitOr BitAnd, BitXor BitOr, Lt LtE, LtE Lt, Gt GtE, GtE Gt, Eq NotEq, NotEq Eq, "
    "Is IsNot, IsNot Is, In NotIn, NotIn In, And Or, Or And"
)
OTHER_FUNCTIONS = pairs(
    "min max, max min, minimum maximum, maximum minimum, floor ceil, ceil floor, any all, all any, zeros ones, "
    "ones zeros, zeros_like ones_like, ones_like zeros_like, logical_and logical_or, logical_or logical_and, "
    "sin cos, cos sin"
)
# Without these, their argument is left.
DROPPED_FUNCTIONS = {"abs", "flip", "reversed", "sorted", "sqrt", "square", "stop_gradient", "transpose", "trunc"}
TYPE_FUNCTIONS = {"NewType", "TypeVar", "cast", "isinstance", "issubclass"}
# Swapped, their first two arguments give the same value.
SYMMETRIC = {"add", "equal", "logical_and", "logical_or", "max", "maximum", "min", "minimum", "multiply"}
# Swapped, the first two are an error in any call: a function, a type or a shape.
OF_FUNCTIONS = {"checkpoint", "cond", "eval_shape", "fori_loop", "jit", "map", "partial", "reduce", "scan", "switch"}
OF_FUNCTIONS |= {"getattr", "hasattr", "vmap", "while_loop"}
OF_SHAPES = {"array", "asarray", "astype", "broadcast_to", "full", "full_like", "ones", "reshape", "zeros"}
NOT_SWAPPED = TYPE_FUNCTIONS | SYMMETRIC | OF_FUNCTIONS | OF_SHAPES
# Arguments that change no value: texts, checks, limits of caches, and what compilers for CPUs ignore.
SILENT_ARGUMENTS = {"indices_are_sorted", "maxsize", "name", "precision", "stacklevel", "strict", "unique_indices"}
TYPES = {"int", "float", "bool", "str", "complex", "tuple", "list", "dict", "ndarray", "Array"}


class Fault(NamedTuple):
    """The bytes from `start` to `end` of the file at `path`, which are `old`, become `new`."""

    path: str
    scope: str
    kind: str
    ordinal: int
    start: int
    end: int
    old: str
    new: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.scope}:{self.kind}:{self.ordinal}"

    @property
    def change(self) -> str:
        return " ".join(f"{self.old} -> {self.new}".split())

    def put_in(self, source: str) -> str:
        data = source.encode()
        return (data[: self.start] + self.new.encode() + data[self.end :]).decode()


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_of_types(node: ast.expr) -> bool:
    """Whether an expression joins types: `int | jax.Array`."""
    match node:
        case ast.BinOp(left, ast.BitOr(), right):
            return is_of_types(left) or is_of_types(right)
        case ast.Subscript(value):
            return is_of_types(value)
    return name_of(node) in TYPES or (isinstance(node, ast.Constant) and node.value is None)


def is_silent(node: ast.AST) -> bool:
    """Whether no test can tell what is changed in the node."""
    match node:
        case ast.If(test):
            return name_of(test) == "TYPE_CHECKING"
        case ast.Expr(value):
            return is_text(value)
        case ast.Call(function):
            return name_of(function) == "warn"
        case ast.keyword(name, value):
            return name in SILENT_ARGUMENTS or (name == "mode" and "promise_in_bounds" in ast.dump(value))
        case ast.FunctionDef(decorator_list=decorators):
            return any(name_of(decorator) == "overload" for decorator in decorators)
        case ast.Assign([ast.Name("__all__")]) | ast.AnnAssign(annotation=ast.Name("TypeAlias")):
            return True
    return isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom))


def parts_of(node: ast.AST):
    """The parts of a node but types and decorators."""
    match node:
        case ast.FunctionDef(args=args, body=body):
            return [*args.defaults, *filter(None, args.kw_defaults), *body]
        case ast.ClassDef(body=body):
            return body
        case ast.AnnAssign(value=value):
            return [value] if value else []
        case ast.BinOp() if is_of_types(node):
            return []
        case ast.Call(function, args) if name_of(function) in TYPE_FUNCTIONS:
            return args[1:] if name_of(function) == "cast" else args[:1]
    return ast.iter_child_nodes(node)


def other(node: ast.AST) -> ast.AST:
    """The operator that stands in place of another."""
    return getattr(ast, OTHERS[type(node).__name__])()


def faults_of_call(function: ast.expr, args: list[ast.expr], keywords: list[ast.keyword]):
    """The kind of each fault of a call, and what the call becomes."""
    name = name_of(function)
    for keyword in keywords:
        if keyword.arg and not is_silent(keyword):
            yield "argument", ast.Call(function, args, [kept for kept in keywords if kept is not keyword])
    first = name == "where"  # its condition stays
    two = args[first : first + 2]
    # Any call would fail with a text, a function or a tuple in place of the other.
    fail = any(is_text(arg) or isinstance(arg, (ast.Starred, ast.Lambda, ast.Tuple)) for arg in two)
    if name not in NOT_SWAPPED and not fail and len({ast.dump(arg) for arg in two}) == 2:
        yield "argument", ast.Call(function, [*args[:first], *reversed(two), *args[first + 2 :]], keywords)
    if name in OTHER_FUNCTIONS:
        renamed = ast.Name if isinstance(function, ast.Name) else lambda name: ast.Attribute(function.value, name)
        yield "function", ast.Call(renamed(OTHER_FUNCTIONS[name]), args, keywords)
    if name in DROPPED_FUNCTIONS and args:
        yield "function", args[0]


def faults_of(node: ast.AST):
    """The kind of each fault of a node, the node that is replaced, and what it becomes."""
    match node:
        case ast.BinOp(left, op, right) if not (is_text(left) or is_text(right) or is_of_types(node)):
            yield "operator", node, ast.BinOp(left, other(op), right)
        case ast.AugAssign(target, op, value) if not is_text(value):
            yield "operator", node, ast.AugAssign(target, other(op), value)
        case ast.Compare(left, ops, values):
            for k, op in enumerate(ops):
                yield "comparison", node, ast.Compare(left, [*ops[:k], other(op), *ops[k + 1 :]], values)
        case ast.BoolOp(op, values):
            yield "condition", node, ast.BoolOp(other(op), values)
        case ast.UnaryOp(ast.Not(), operand):
            yield "condition", node, operand
        case ast.UnaryOp(ast.USub(), operand):
            yield "sign", node, operand
        case ast.Constant(bool(value)):
            yield "constant", node, ast.Constant(not value)
        case ast.Constant(int(value)):
            yield "constant", node, ast.Constant(value + 1)
        case ast.Constant(float(value)):
            yield "constant", node, ast.Constant(1.5 * value or 1.0)
        case ast.IfExp(test, body, orelse):
            yield "branch", node, ast.IfExp(test, orelse, body)
        # A comparison and a negation have this fault already.
        case ast.If(test) if not isinstance(test, (ast.Compare, ast.UnaryOp)):
            yield "branch", test, ast.UnaryOp(ast.Not(), test)
        case ast.Expr(ast.Call()):
            yield "statement", node, ast.Pass()
        case ast.Call(function, args, keywords):
            for kind, new in faults_of_call(function, args, keywords):
                yield kind, node, new


class Places(ast.NodeVisitor):
    """The faults of one file, and the lines of each of its functions."""

    def __init__(self, path: str, source: str):
        self.path, self.source, self.scope = path, source, ()
        lengths = (len(line.encode()) for line in source.splitlines(keepends=True))
        self.starts = [0, 0, *itertools.accumulate(lengths)]
        self.counts, self.faults, self.texts = collections.Counter(), [], {}
        self.visit(ast.parse(source))

    def visit(self, node):
        if is_silent(node):
            return
        outer = self.scope
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            self.scope = (*outer, node.name)
        elif not outer and isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            self.scope = (ast.unparse(getattr(target, "elts", [target])[0]),)
        if self.scope != outer:
            self.texts[".".join(self.scope)] = ast.get_source_segment(self.source, node)
        for kind, replaced, new in faults_of(node):
            self.add(kind, replaced, new)
        for part in parts_of(node):
            self.visit(part)
        self.scope = outer

    def add(self, kind: str, node: ast.AST, new: ast.AST):
        scope = ".".join(self.scope)
        start, end = self.starts[node.lineno] + node.col_offset, self.starts[node.end_lineno] + node.end_col_offset
        text = ast.unparse(ast.fix_missing_locations(new))
        text = f"({text})" if isinstance(node, ast.expr) else text
        ordinal = self.counts[scope, kind]
        self.counts[scope, kind] += 1
        self.faults.append(Fault(self.path, scope, kind, ordinal, start, end, ast.unparse(node), text))
