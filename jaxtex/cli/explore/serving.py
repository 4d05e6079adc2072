"""The server of the page, until it is interrupted."""

import contextlib
import logging
import signal
import socket
from collections.abc import Generator
from types import FrameType
from typing import Any

from panel.io.server import get_server  # pyright: ignore[reportMissingImports]

from ..environment.devices import Device
from ..errors import UserError
from ..grammar.option_groups import EXPLORE_PORT, Options
from ..process.messages import print_report
from ..process.signals import WORDS, Terminated
from .layout import NAME
from .page import Page
from .rendering import Renderer
from .shown_picture import ShownPicture

HERE = ("127.0.0.1", "localhost")
ALL_ADDRESSES = "0.0.0.0"


def serve(picture: ShownPicture, options: Options, device: Device) -> int:
    """Serves the page of a picture until Ctrl-C; returns the exit code.

    Raises:
        UserError: if the address or the port cannot be used.
        Terminated: if a signal ended it.
    """
    # They report each tab that is closed, and browsers that are refused with options that this command does not have.
    for name in ("asyncio", "panel", "tornado", "bokeh.server.views.ws"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger("bokeh").setLevel(logging.ERROR)
    port = free_port(options.host, options.port)
    renderer = Renderer(picture.pixels)
    # The first view is compiled before anybody waits for it.
    Page(picture, renderer, device)
    with handlers_kept():
        server = get_server(
            lambda: Page(picture, renderer, device).template(),
            port=port,
            address=options.host,
            websocket_origin=origins(options.host, port),
            title=NAME,
            start=False,
            show=False,
            verbose=False,
        )
        ended = stop_at_signals(server.io_loop)
        server.start()
        print_report(f"{picture}")
        print_report(f"Open {url(options.host, port)} in a browser. Ctrl-C ends the program.")
        if options.browser:
            server.io_loop.add_callback(lambda: server.show("/"))
        server.io_loop.start()
        server.stop()
    if ended and ended[0] != signal.SIGINT:
        raise Terminated(ended[0])
    print_report("The page is closed.")
    return 0


def free_port(host: str, port: int | None) -> int:
    """A port of an address that nobody uses: the one that is given, or else the usual one or any other.

    Raises:
        UserError: if there is no such address, or the port that is given is in use.
    """
    failures: list[OSError] = []
    for candidate in (port,) if port is not None else (EXPLORE_PORT, 0):
        try:
            return bound_port(host, candidate)
        except socket.gaierror as error:
            raise UserError(f"--host {host} is no address of this machine ({error.strerror})") from error
        except OSError as error:
            failures.append(error)
    reason = failures[-1].strerror or str(failures[-1])
    raise UserError(
        f"cannot serve on {host}, port {port or EXPLORE_PORT}: {reason}; choose others with --host and --port"
    )


def bound_port(host: str, port: int) -> int:
    """The number that a port has when it is opened; 0 is any free one."""
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        return int(opened.getsockname()[1])


def url(host: str, port: int) -> str:
    """The address of the page on this machine."""
    return f"http://{HERE[0] if host == ALL_ADDRESSES else host}:{port}"


def origins(host: str, port: int) -> list[str]:
    """The names under which a browser may open the page: all, if all addresses are served."""
    if host == ALL_ADDRESSES:
        return ["*"]
    return [f"{name}:{port}" for name in (HERE if host in HERE else (host,))]


def end_signals() -> list[int]:
    """The signals that ask the process to end."""
    return [number for name in ("SIGINT", *WORDS) if (number := getattr(signal, name, None)) is not None]


@contextlib.contextmanager
def handlers_kept() -> Generator[None, None, None]:
    """Restores the handlers of signals behind the block; Panel sets one of its own."""
    before = {number: signal.getsignal(number) for number in end_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop_at_signals(loop: Any) -> list[int]:
    """Has a signal stop the loop; returns a list to which the number of the signal comes.

    An exception from a handler would be lost in the loop, or be printed with a traceback.
    """
    ended: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        ended.append(number)
        loop.asyncio_loop.call_soon_threadsafe(loop.stop)

    for number in end_signals():
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)
    return ended
