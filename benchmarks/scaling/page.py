"""The section of a page that is made from figures."""

import pathlib
import re

HEADING = "## Measured"
COMMANDS = """\
These commands compare the time on several devices with the time on one:

```sh
python -m benchmarks.scaling --json run.json           # on a machine with several GPUs
python -m benchmarks.scaling --from run.json --page docs/scaling.md
XLA_FLAGS=--xla_force_host_platform_device_count=8 python -m benchmarks.scaling --size small   # to try it without GPUs
```"""


def replace_section(page: pathlib.Path, text: str) -> None:
    """Writes the section "Measured", up to the next heading of its kind."""
    section = "\n\n".join([HEADING, COMMANDS, text])
    found = page.read_text()
    if not re.search(rf"^{HEADING}$", found, re.MULTILINE):
        raise SystemExit(f"--page {page} has no section '{HEADING}'; add this heading where the figures are to stand")
    pattern = re.compile(rf"^{HEADING}$.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    page.write_text(pattern.sub(lambda _: f"{section}\n\n", found).rstrip("\n") + "\n")
