"""The equations of programs."""

from jax.extend.core import jaxprs_in_params


def equations(jaxpr):
    """All equations of a program, those of its inner programs too."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in jaxprs_in_params(equation.params):
            yield from equations(inner)
