"""Environment variables that JAX and XLA refuse are one sentence."""

import os

import jax
import pytest
from test_cli_folders import start

from jaxtex.cli.environment.jax_settings import check_xla_flags, refused_settings
from jaxtex.cli.errors import UserError


@pytest.mark.parametrize("command", [("info",), ("warp", "in.png", "out.png")])
def test_a_setting_that_jax_refuses_is_a_sentence(command):
    process = start(*command, JAX_ENABLE_X64="maybe")
    report, errors = process.communicate()
    assert (process.returncode, report, errors.count("\n")) == (2, "", 1)
    assert errors.startswith("jaxtex: error: JAX does not start with JAX_ENABLE_X64=maybe; change or unset it (")


def test_a_flag_that_xla_refuses_is_a_sentence():
    """XLA would end the process."""
    process = start("info", XLA_FLAGS="--nonsense")
    report, errors = process.communicate()
    assert (process.returncode, report, errors.count("\n")) == (2, "", 1)
    assert errors.startswith("jaxtex: error: XLA does not start with XLA_FLAGS=--nonsense; change or unset it (")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--xla_force_host_platform_device_count=many", "many for flag xla_force_host_platform_device_count"),
        ("no_file", 'Could not open file "no_file"'),
        ("--xla_force_host_platform_device_count=2", None),
        (" ", None),
    ],
)
def test_flags_are_tried_in_another_process(flags, words):
    environment = {**os.environ, "XLA_FLAGS": flags}
    if words is None:
        check_xla_flags(environment)
        return
    with pytest.raises(UserError, match="XLA does not start with XLA_FLAGS=") as caught:
        check_xla_flags(environment)
    assert words in str(caught.value)


def test_the_variable_that_a_message_is_about_is_named():
    given = {"JAX_DEFAULT_DEVICE": "moon", "JAX_LOG_COMPILES": "1", "HOME": "/root"}
    with pytest.raises(ValueError, match="default_device") as caught:
        jax.config.update("jax_default_device", "moon")
    assert refused_settings(str(caught.value), given) == " with JAX_DEFAULT_DEVICE=moon; change or unset it"
    both = " with JAX_DEFAULT_DEVICE=moon and JAX_LOG_COMPILES=1; change or unset them"
    assert refused_settings("it is broken", given) == both
    assert refused_settings("it is broken", {}) == ""
