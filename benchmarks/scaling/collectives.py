"""The bytes that a device sends in a compiled program, from the program's collectives."""

import math
import re

COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.-]+) \(.*\{$")
KINDS = "all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter|ragged-all-to-all"
INSTRUCTION = re.compile(rf"\s*(?:ROOT )?%?[\w.-]+ = (.*?) ({KINDS})(-start)?\(")
CALLED = re.compile(r"\b(?:calls|to_apply|body|condition)=\{?%?([\w.-]+)")
ARRAY = re.compile(r"\b([a-z]+\d+\w*|pred)\[([\d,]*)\]")
BITS = re.compile(r"\d+")

# What a device sends of the bytes of a result, on n devices. A ring sends a sum around twice.
SENT = {
    "all-gather": lambda n: (n - 1) / n,
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "all-to-all": lambda n: (n - 1) / n,
    "ragged-all-to-all": lambda n: (n - 1) / n,
    "collective-permute": lambda n: 1.0,
    "reduce-scatter": lambda n: n - 1.0,
}


def bytes_sent(text: str, devices: int) -> int:
    """The bytes that one device sends in one call of an HLO program.

    What stands in a branch is not counted: further rounds of a routed read, which are not needed as a rule. What stands
    in a loop is counted once.
    """
    computations: dict[str, list[str]] = {}
    entry = name = ""
    for line in text.splitlines():
        if found := COMPUTATION.match(line):
            name = found[2]
            entry = name if found[1] else entry
        computations.setdefault(name, []).append(line)
    total, seen, waiting = 0.0, {entry}, [entry]
    while waiting:
        for line in computations.get(waiting.pop(), []):
            if found := INSTRUCTION.match(line):
                shapes, kind, started = found.groups()
                total += SENT[kind](devices) * array_bytes(results(kind, shapes) if started else shapes)
            for called in CALLED.findall(line):
                if called not in seen:
                    seen.add(called)
                    waiting.append(called)
    return round(total)


def results(kind: str, shapes: str) -> str:
    """The results in the shape of an operation that is only started: `(operands, results, ...)`; a sum has results."""
    if kind == "all-reduce":
        return shapes
    parts, depth, start = list[str](), 0, 1
    for at, sign in enumerate(shapes):
        depth += (sign in "([{") - (sign in ")]}")
        if (sign == "," and depth == 1) or depth == 0:
            parts.append(shapes[start:at])
            start = at + 1
    return parts[1]


def array_bytes(shapes: str) -> int:
    """The bytes of all arrays in a shape, such as `(f32[8,4]{1,0}, s32[])`."""
    total = 0
    for dtype, sizes in ARRAY.findall(shapes):
        bits = 8 if dtype == "pred" else int(BITS.search(dtype)[0])
        total += math.prod(map(int, filter(None, sizes.split(",")))) * max(bits // 8, 1)
    return total
