"""The page, one for each browser that opens it: controls, pictures, and what makes them."""

import base64
import contextlib
import html
import time
from collections.abc import Callable, Generator
from typing import Any

import panel as pn  # pyright: ignore[reportMissingImports]

from ..environment.devices import Device
from ..errors import describe
from ..pictures.picture import Array
from .controls import Controls
from .layout import CODE_STYLE, COPY_SCRIPT, PICTURE_STYLE, TEMPLATE, TEXT_STYLE
from .rendering import Renderer, amplified, difference_sentence, png
from .shown_picture import ShownPicture
from .views import View, hardware_problem
from .written import command_line, command_problem, python_call

FILL = {"sizing_mode": "stretch_width", "margin": 0}
WAITING = "Computing ..."
ABOUT_ANTIALIAS = (
    "With antialias, the two also smooth differently: float arithmetic reads a level by the mean over two texels, "
    "a texture unit by its linear filter."
)
ABOUT_SIZE = "The command warps the picture at its full size."


class Page:
    """The page of one browser.

    Args:
        picture: that is warped.
        renderer: of the picture, which all pages share.
        device: what computes, for the report.
    """

    def __init__(self, picture: ShownPicture, renderer: Renderer, device: Device) -> None:
        self.picture, self.renderer, self.device = picture, renderer, device
        self.is_waiting = False
        self.controls = Controls(picture.shown_size)
        self.notes, self.status, self.largest = (text_pane() for _ in range(3))
        self.warped, self.difference = PicturePane("The warped picture"), PicturePane("The difference")
        self.python, self.command = CodeBlock(), CodeBlock("command")
        self.controls.watch(self.changed)
        self.update()

    def template(self) -> Any:
        """What the server shows."""
        template = pn.Template(TEMPLATE)
        template.add_panel("source", text_pane(str(self.picture)))
        template.add_panel("controls", pn.Column(*self.controls.of_view.values(), self.notes, **FILL))
        difference = pn.Column(self.difference.pane, self.controls.of_factor, self.largest, **FILL)
        template.add_panel("warped", pn.Column(self.warped.pane, self.status, **FILL))
        template.add_panel("difference", difference)
        template.add_panel("python", self.python.column)
        template.add_panel("command", self.command.column)
        return template

    def changed(self, _: Any) -> None:
        """Updates the page, once for all changes that come while it waits."""
        if not self.is_waiting:
            self.is_waiting = True
            next_tick(self.announce)

    def announce(self) -> None:
        """Says that the page is at work."""
        self.status.object = paragraphs(WAITING)
        next_tick(self.update)

    def update(self) -> None:
        """Computes and shows what the controls say."""
        self.is_waiting = False
        view = self.controls.view()
        self.notes.object = paragraphs(*self.controls.disable(view))
        try:
            self.show(view)
        except Exception as error:  # of the device, such as too little memory: the page stays, and says so
            self.status.object = f'<p class="problem">{html.escape(describe(error))}</p>'

    def show(self, view: View) -> None:
        """Computes and shows a view."""
        start = time.perf_counter()
        rendered = self.renderer.render(view)
        milliseconds = 1e3 * (time.perf_counter() - start)
        self.warped.show(rendered.pixels)
        done = "Compiled and computed" if rendered.is_first else "Computed"
        both = "" if rendered.differences is None else " for float and hardware together"
        self.status.object = paragraphs(
            f"Arithmetic: {view.arithmetic}. {done} on {self.device.device_kind} in {milliseconds:.0f} ms{both}."
        )
        if rendered.differences is None:
            self.difference.show(None)
            self.largest.object = paragraphs(hardware_problem(view) or "")
        else:
            self.difference.show(amplified(rendered.differences, self.controls.factor()))
            more = [ABOUT_ANTIALIAS] if view.antialias else []
            self.largest.object = paragraphs(difference_sentence(rendered.differences), *more)
        self.python.show(python_call(view, self.picture))
        is_reduced = self.picture.shown_size != self.picture.size
        command = command_line(view, self.picture)
        self.command.show(command, command_problem(view) or (ABOUT_SIZE if is_reduced else ""))


class CodeBlock:
    """A text in a fixed-width font, with a button that copies it.

    Args:
        kind: of the text, the class of its element.
    """

    def __init__(self, kind: str = "python") -> None:
        self.kind = kind
        self.text = pn.pane.HTML("", stylesheets=[CODE_STYLE], tags=[""], **FILL)
        self.button = pn.widgets.Button(name="Copy", margin=(6, 0, 0, 0))
        self.button.jscallback(clicks=COPY_SCRIPT, args={"source": self.text, "button": self.button})
        self.note = text_pane()
        self.column = pn.Column(self.text, self.button, self.note, **FILL)

    def show(self, text: str | None, note: str = "") -> None:
        """Shows a text, or none, and a sentence."""
        self.button.visible = text is not None
        self.text.tags = [text or ""]
        self.text.object = "" if text is None else f'<pre class="{self.kind}">{html.escape(text)}</pre>'
        self.note.object = paragraphs(note)


class PicturePane:
    """A place for a picture, which is shown pixel by pixel where there is room.

    Args:
        alternative: what stands for the picture where it is not seen.
    """

    def __init__(self, alternative: str) -> None:
        self.alternative = html.escape(alternative)
        self.pane = pn.pane.HTML("", stylesheets=[PICTURE_STYLE], **FILL)

    def show(self, pixels: Array | None) -> None:
        """Shows a picture, or none."""
        if pixels is None:
            self.pane.object = ""
            return
        height, width, _ = pixels.shape
        data = base64.b64encode(png(pixels)).decode()
        size = f'width="{width}" height="{height}"'
        self.pane.object = f'<img alt="{self.alternative}" {size} src="data:image/png;base64,{data}">'


def next_tick(function: Callable[[], None]) -> None:
    """Runs a function when what the browser has sent is handled; at once without a browser.

    All that the function changes is sent as one message, in order: Bokeh sends it, with its lock. Panel would send
    without the lock, and loses messages that wait while another one is written.
    """
    document = pn.state.curdoc
    if document is None:
        function()
        return

    def run() -> None:
        with held(document):
            function()

    document.add_next_tick_callback(run)


@contextlib.contextmanager
def held(document: Any) -> Generator[None, None, None]:
    """Holds the changes of a document back until the end of the block."""
    document.hold("combine")
    try:
        yield
    finally:
        document.unhold()


def text_pane(text: str = "") -> Any:
    """A place for sentences."""
    return pn.pane.HTML(paragraphs(text), stylesheets=[TEXT_STYLE], **FILL)


def paragraphs(*sentences: str) -> str:
    """Sentences as paragraphs."""
    return "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences if sentence)
