"""The environment variables that JAX and XLA read when they start."""

# pyright: strict

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping

from ..errors import UserError, one_line

PREFIX, XLA_FLAGS = "JAX_", "XLA_FLAGS"
# XLA parses its flags when they are first needed, and ends the process if one is wrong: so another process tries it.
PARSE_FLAGS = "from jaxlib import xla_client; xla_client.CompileOptions()"
# A line that XLA logs as an error or a fatal one, and its text.
LOGGED = re.compile(r"^[EF]\d{4} .*?\] (.*)$", re.MULTILINE)


def start_jax() -> None:
    """Imports JAX, once it is known that XLA takes its flags.

    Raises:
        UserError: if an environment variable has a value that one of them refuses.
    """
    if "jax" in sys.modules:
        return
    check_xla_flags(os.environ)
    try:
        importlib.import_module("jax")
    except (ValueError, RuntimeError) as error:
        raise UserError(f"JAX does not start{refused_settings(str(error), os.environ)} ({one_line(error)})") from error


def refused_settings(message: str, environment: Mapping[str, str]) -> str:
    """Which variables a message of JAX is about, as the middle of a sentence; all of JAX's if it names none.

    JAX's messages have the name of the variable, or of its setting: jax_enable_x64, jax.default_device.
    """
    ours = [name for name in environment if name.startswith(PREFIX)]
    named = [name for name in ours if name.removeprefix(PREFIX).lower() in message.lower()]
    settings = [f"{name}={environment[name]}" for name in named or ours]
    if not settings:
        return ""
    return f" with {' and '.join(settings)}; change or unset {'it' if len(settings) == 1 else 'them'}"


def check_xla_flags(environment: Mapping[str, str]) -> None:
    """Checks that XLA takes its flags, if there are any.

    Raises:
        UserError: if it would end the process.
    """
    flags = environment.get(XLA_FLAGS, "")
    if not flags.strip():
        return
    command = [sys.executable, "-c", PARSE_FLAGS]
    tried = subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=False)
    logged = LOGGED.search(tried.stderr)
    if tried.returncode and logged:
        reason = logged[1].strip().rstrip(".")
        raise UserError(f"XLA does not start with {XLA_FLAGS}={flags}; change or unset it ({reason})")
