"""Builds, serves and checks the documentation site: `python -m docs build`, from the root of a checkout."""

import argparse
import functools
import http.server
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE / "_build"
HTML = BUILD / "html"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m docs", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build the site in docs/_build/html; a warning is an error")
    build.add_argument("--out", type=Path, default=HTML, metavar="FOLDER", help="where to write the pages")
    build.add_argument("--fresh", action="store_true", help="forget what was built before")
    serve = commands.add_parser("serve", help="build the site and serve it on this machine")
    serve.add_argument("--port", type=int, default=8000)
    commands.add_parser("linkcheck", help="follow all links to other sites; needs the network")
    options = parser.parse_args(arguments)
    if options.command == "linkcheck":
        return sphinx("linkcheck", BUILD / "linkcheck")
    failed = sphinx("html", getattr(options, "out", HTML), fresh=getattr(options, "fresh", False))
    if options.command == "serve" and not failed:
        show(options.port)
    return failed


def sphinx(builder: str, out: Path, *, fresh: bool = False) -> int:
    """Runs a builder of Sphinx, and returns the exit code."""
    try:
        from sphinx.cmd.build import build_main
    except ModuleNotFoundError:
        sys.exit("Sphinx is not installed; pip install -e '.[docs]'")
    doctrees = out.parent / f"{out.name}-doctrees"
    if fresh:
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(doctrees, ignore_errors=True)
    # Warnings are errors, reported at the end (-W --keep-going), and a reference to nothing is one (-n).
    return build_main(["-b", builder, "-W", "--keep-going", "-n", "-d", str(doctrees), str(HERE), str(out)])


def show(port: int) -> None:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(HTML))
    try:
        opened = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        sys.exit(f"port {port} cannot be opened: {error.strerror}; name another one with --port")
    with opened as server:
        print(f"http://127.0.0.1:{server.server_port}, until you press Ctrl+C", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    sys.exit(main())
