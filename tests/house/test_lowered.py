"""The comparison of programs of two commits still lowers calls of each of its groups."""

import jax
import pytest

from tests.lowered.programs import texts_of


@pytest.mark.slow
def test_a_call_of_each_group_is_lowered():
    from tests.lowered.calls import GROUPS

    for group, calls in GROUPS.items():
        if group not in ("sharded", "partitioned") or jax.device_count() >= 8:
            name, call = next(iter(calls.items()))
            assert texts_of(call if group == "reads" else call._replace(ways=("value",))), name
