"""Functions of one sample, drawn at random from the operations of JAX, as kernels and as `jax.vmap`."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from tests.fuzz.cases import STEP, Case, chance, pick

# Values stay near 1, and no choice depends on a rounded number: comparisons are of integers and of arguments.
tame = lambda x: x / (1 + x * x)
above = lambda x: 1 + x * x
lax = jax.lax

# What a step makes, of what: numbers ("f"), integers ("i"), truth values ("b") and short vectors ("v"); "x" and "w" are
# a number and a vector among the arguments.
OPERATIONS = [
    *(("f", "f", f) for f in (jnp.sin, jnp.cos, jnp.tanh, tame, jnp.arctan, jnp.abs, jnp.negative, lax.logistic)),
    *(("f", "f", f) for f in (lambda a: jnp.exp(-jnp.abs(a)), lambda a: jnp.sqrt(above(a)), lambda a: tame(a) ** 3)),
    *(("f", "f", f) for f in (lambda a: jnp.log1p(a * a), lambda a: lax.rsqrt(above(a)), lambda a: jnp.expm1(tame(a)))),
    *(("f", "f", f) for f in (lambda a: jnp.arcsin(tame(a)), lambda a: jnp.arctanh(tame(a)), jnp.arcsinh, lax.erf)),
    *(("f", "f", f) for f in (lambda a: jnp.arccosh(above(a) + 0.5), lambda a: jnp.exp2(tame(a)), jax.nn.softplus)),
    *(("f", "f", f) for f in (lambda a: jnp.clip(a, -0.7, 0.8), lambda a: jnp.cbrt(above(a)), lambda a: 0.25 * a * a)),
    *(("f", "ff", f) for f in (jnp.add, jnp.subtract, lambda a, b: tame(a) * b, jnp.maximum, jnp.minimum)),
    *(("f", "ff", f) for f in (lambda a, b: a / above(b), lambda a, b: above(tame(a)) ** tame(b))),
    *(("f", "ff", f) for f in (lambda a, b: jnp.arctan2(a, above(b)), lambda a, b: jnp.hypot(a, above(b)))),
    *(("f", "x", f) for f in (jnp.floor, jnp.ceil, jnp.round, jnp.sign, jnp.trunc)),
    ("f", "bff", jnp.where),
    ("f", "i", lambda i: (i & 255).astype(jnp.float32) / 100),
    *(("i", "ii", f) for f in (jnp.add, jnp.subtract, jnp.multiply, jnp.bitwise_and, jnp.bitwise_or, jnp.bitwise_xor)),
    *(("i", "ii", f) for f in (jnp.minimum, jnp.maximum, lambda i, j: i // (1 + (j & 15)), lambda i, j: i % 7 - j % 5)),
    *(("i", "ii", f) for f in (lambda i, j: lax.rem(i, 1 + (j & 15)), lambda i, j: lax.div(i, 1 + (j & 15)))),
    *(("i", "ii", f) for f in (lambda i, j: i << (j & 7), lambda i, j: i >> (j & 7))),
    *(
        ("i", "i", f)
        for f in (jnp.abs, jnp.sign, jnp.invert, lax.clz, lax.population_count, lambda i: jnp.clip(i, -9, 9))
    ),
    ("i", "ii", lambda i, j: lax.shift_right_logical(i, j & 7)),
    ("i", "i", lambda i: (i.astype(jnp.uint32) * jnp.uint32(2654435761) >> 9).astype(jnp.int32)),
    ("i", "i", lambda i: i.astype(jnp.int8).astype(jnp.int32) - i.astype(jnp.uint16)),
    ("i", "x", lambda x: jnp.floor(4 * x).astype(jnp.int32)),
    ("i", "f", lambda a: 0 * lax.bitcast_convert_type(a, jnp.int32)),
    ("i", "bii", jnp.where),
    ("i", "w", lambda w: jnp.argmax(w)),
    *(("b", "ii", f) for f in (jnp.less, jnp.equal, jnp.not_equal, jnp.greater_equal)),
    *(("b", "bb", f) for f in (jnp.logical_and, jnp.logical_or, jnp.logical_xor)),
    ("b", "xx", jnp.less),
    ("b", "b", jnp.logical_not),
    ("b", "w", lambda w: jnp.any(w > 1)),
    ("b", "w", lambda w: jnp.all(w > -1)),
    ("v", "fff", lambda *a: jnp.stack([*a, a[0] * 0.5])),
    *(("v", "v", f) for f in (jnp.cumsum, jnp.sort, jnp.flip, jax.nn.softmax, lambda v: v.reshape(2, 2).T.ravel())),
    *(("v", "v", f) for f in (lambda v: jnp.roll(v, 1), lambda v: jnp.pad(v[1:], (1, 0)), lambda v: v @ MATRIX)),
    *(("v", "v", f) for f in (lambda v: jnp.cumprod(tame(v)), lambda v: jax.vmap(jnp.sin)(v) / 2)),
    *(("v", "vv", f) for f in (jnp.add, lambda v, w: jnp.where(MASK, v, w), lambda v, w: jnp.outer(tame(v), w).sum(0))),
    ("v", "vv", lambda v, w: jnp.concatenate([jnp.cross(v[:3], tame(w[1:])), w[:1]])),
    ("v", "ivf", lambda i, v, a: v.at[i % 4].set(a)),
    ("v", "ivf", lambda i, v, a: v.at[i & 3].add(0.5 * a)),
    ("v", "iv", lambda i, v: jnp.concatenate([lax.dynamic_slice(v, (i % 3,), (2,)), v[:2]])),
    ("v", "iv", lambda i, v: lax.dynamic_update_slice(v, tame(v[:2]), (i & 1,))),
    ("v", "if", lambda i, a: a * jax.nn.one_hot(i % 4, 4)),
    *(("f", "v", f) for f in (jnp.sum, jnp.max, jnp.min, jnp.mean, lambda v: jnp.prod(tame(v)))),
    *(("f", "v", f) for f in (lambda v: jnp.sqrt(1 + v @ v), jax.nn.logsumexp, lambda v: jnp.linalg.norm(above(v)))),
    ("f", "iv", lambda i, v: v[i % 4]),
    ("f", "ti", lambda t, i: t[i % 300]),
    ("f", "gii", lambda g, i, j: g[i % 17, j % 23].sum()),
    ("f", "gxx", lambda g, x, y: jt.sample(jt.texture2d(g), (x, y), jt.Sampler(address_mode="wrap")).sum()),
    ("v", "gxx", lambda g, x, y: jt.gather(jt.texture2d(g), (x, y))),
    # Programs in the function.
    ("f", "fv", lambda a, v: lax.fori_loop(0, 3, lambda k, c: tame(c) + 0.5 * v[k], a)),
    ("f", "iif", lambda i, j, a: lax.fori_loop(0, 4, lambda k, c: lax.cond(i > j + k, jnp.sin, tame, c), a)),
    ("v", "fv", lambda a, v: lax.scan(lambda c, b: (tame(c + b), c - b), a, v)[1]),
    ("f", "bff", lambda b, x, y: lax.cond(b, lambda x, y: jnp.sin(x) + y, lambda x, y: x * tame(y), x, y)),
    ("v", "iv", lambda i, v: lax.switch(i & 3, [jnp.cumsum, jnp.sin, lambda v: -v, lambda v: v[::-1]], v)),
    ("f", "ff", jax.jit(lambda a, b: jnp.sin(a) * tame(b))),
    ("f", "fv", jax.checkpoint(lambda a, v: jnp.sum(jnp.sin(a * v)))),
    ("f", "f", jax.grad(lambda a: jnp.sin(a) * tame(a))),
    ("f", "f", lambda a: jax.jvp(jnp.tanh, (a,), (tame(a),))[1]),
    ("f", "v", lambda v: jax.grad(lambda v: jnp.sum(jnp.sin(v) * v[::-1]))(v)[1]),
]
# Without derivatives in reverse mode.
LOOPS = [
    ("f", "if", lambda i, a: lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, tame(c[1]) + 0.1), (i & 7, a))[1]),
    ("i", "i", lambda i: lax.while_loop(lambda n: n > 9, lambda n: jnp.where(n % 2, 3 * n + 1, n // 4), i & 1023)),
]
MATRIX = np.sin(np.arange(16, dtype=np.float32)).reshape(4, 4)
MASK = np.array([True, False, False, True])
ARGUMENTS = {"x": "xf", "y": "xf", "i": "i", "j": "i", "w": "wv", "table": "t", "image": "g"}


def arguments_of(rng, samples):
    number = lambda: (np.floor(rng.uniform(-2, 2, samples) * STEP) / STEP + 0.5 / STEP).astype(np.float32)
    whole = lambda: rng.integers(-60, 60, samples).astype(np.int32)
    found = {"x": number(), "y": number(), "i": whole(), "j": whole()}
    found["w"] = rng.normal(size=(samples, 4)).astype(np.float32)
    found["table"] = rng.normal(size=300).astype(np.float32)
    return found | {"image": rng.normal(size=(17, 23, 1)).astype(np.float32)}


def draw_function(rng):
    """A function of up to thirty steps; one in three returns integers, one in five loops until a count is reached."""
    loops = chance(rng, 0.2)
    values = {kind: [k for k, kinds in enumerate(ARGUMENTS.values()) if kind in kinds] for kind in "fibvxwtg"}
    steps, offered = [], [*OPERATIONS, *(LOOPS * 8 if loops else [])]
    values["b"] = [len(ARGUMENTS)]
    for k in range(int(rng.integers(3, 30))):
        made, of, f = pick(rng, offered)
        # Later values are likelier, so that functions are deep.
        steps.append((f, [pick(rng, values[kind][-5:]) for kind in of]))
        values[made].append(len(ARGUMENTS) + 1 + k)
    integers = chance(rng, 0.33)
    out = values["i"][-4:] if integers else [*values["f"][-4:], *values["i"][-1:]]
    vector = None if integers else values["v"][-1]

    def function(*args):
        known = [*args, args[2] < args[3]]
        for f, places in steps:
            known.append(f(*(known[k] for k in places)))
        if integers:
            return jnp.stack([known[k] for k in out])
        numbers = [jnp.asarray(known[k] % 64, jnp.float32) if k in values["i"] else known[k] for k in out]
        return jnp.concatenate([jnp.stack(numbers), known[vector]])

    samples, names = int(pick(rng, [1, 7, 40, 200])), [*ARGUMENTS]
    inputs = arguments_of(rng, samples)
    axes = [None if name in ("table", "image") else 0 for name in names]
    mapped = lambda way: lambda **given: way(function, axes)(*(given[name] for name in names))
    wrt = () if integers or loops else tuple(name for name in names if inputs[name].dtype == np.float32)
    return Case(
        text=f"a function of {len(steps)} steps of {samples} samples",
        function=mapped(jt.fused_vmap),
        meaning=mapped(jax.vmap),
        inputs=inputs,
        wrt=wrt,
        steady=True,
        reach=16.0,
        floors=dict.fromkeys((*names, "value"), 4.0) | dict.fromkeys(("table", "image"), float(samples)),
    )
