"""Environment variables that JAX and XLA refuse are one sentence; warnings of libraries are notes."""

import os
import warnings

import jax
import pytest

from jaxtex.cli import pipeline
from jaxtex.cli.jax_start import check_xla_flags, refused_settings
from jaxtex.cli.process import UserError
from tests.cli.test_cli import noise, run, save
from tests.cli.test_cli_folders import start

REFUSED = {
    "JAX_ENABLE_X64=maybe": "JAX does not start with JAX_ENABLE_X64=maybe; change or unset it (",
    "XLA_FLAGS=--nonsense": "XLA does not start with XLA_FLAGS=--nonsense; change or unset it (",  # and end the process
}


@pytest.mark.parametrize("setting", REFUSED)
def test_a_setting_that_jax_or_xla_refuses_is_a_sentence(setting):
    process = start(
        *(("info",) if "XLA" in setting else ("warp", "in.png", "out.png")), **dict([setting.split("=", 1)])
    )
    report, errors = process.communicate()
    assert (process.returncode, report, errors.count("\n")) == (2, "", 1)
    assert errors.startswith(f"jaxtex: error: {REFUSED[setting]}")


def test_flags_are_tried_in_another_process():
    assert check_xla_flags({**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}) is None
    with pytest.raises(UserError, match=r'XLA does not start with XLA_FLAGS=no_file.*Could not open file "no_file"'):
        check_xla_flags({**os.environ, "XLA_FLAGS": "no_file"})


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_warnings_of_libraries_are_notes(tmp_path, capsys, monkeypatch, options):
    """As of a cache that cannot be written."""
    warp = pipeline.warp

    def warning(*arguments, **keywords):
        warnings.warn("cannot\nwrite the cache", UserWarning, stacklevel=1)
        return warp(*arguments, **keywords)

    monkeypatch.setattr(pipeline, "warp", warning)
    code, _, errors = run(capsys, "warp", save(tmp_path / "in.png", noise(3)), tmp_path / "out.png", *options)
    assert (code, errors) == (0, "" if options else "jaxtex: note: cannot write the cache\n")


def test_the_variable_that_a_message_is_about_is_named():
    given = {"JAX_DEFAULT_DEVICE": "moon", "JAX_LOG_COMPILES": "1", "HOME": "/root"}
    with pytest.raises(ValueError, match="default_device") as caught:
        jax.config.update("jax_default_device", "moon")
    assert refused_settings(str(caught.value), given) == " with JAX_DEFAULT_DEVICE=moon; change or unset it"
    both = " with JAX_DEFAULT_DEVICE=moon and JAX_LOG_COMPILES=1; change or unset them"
    assert refused_settings("it is broken", given) == both
    assert refused_settings("it is broken", {}) == ""
