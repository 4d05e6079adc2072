"""`jaxtex explore` in a browser, as a program of its own: Playwright drives the Chromium of the system.

Skipped where Panel (the extra `explore`), Playwright or Chromium is missing.
"""

import base64
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import imagecodecs
import numpy as np
import pytest

import jaxtex
from tests.cli.test_cli import noise, save

ROOT = Path(jaxtex.__file__).parents[1]
pytest.importorskip("panel", reason="needs Panel, of the extra explore")
playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

SECONDS = 120  # for anything, on a busy machine
ADDRESS = re.compile(r"Open (http://127\.0\.0\.1:\d+) in a browser")


def started(path, *options):
    """A running `jaxtex explore`, and the address that it prints."""
    command = [sys.executable, "-m", "jaxtex", "explore", str(path), "--no-browser", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=environment, cwd=path.parent, stdout=pipe, stderr=pipe, text=True)
    printed = []
    for line in process.stdout:
        printed.append(line)
        if found := ADDRESS.search(line):
            return process, found[1], "".join(printed)
    raise AssertionError(process.communicate()[1])


def stopped(process, number=signal.SIGINT):
    """The exit code, standard output and standard error of a program after a signal."""
    process.send_signal(number)
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The address of a page, which ends with a sentence when it is interrupted."""
    path = save(tmp_path_factory.mktemp("explore") / "in.png", noise(3, height=32, width=48))
    process, address, printed = started(path, "--port", str(free_port()))
    assert printed.startswith("in.png: 48x32 pixels\n")
    try:
        yield address
    finally:
        ended = stopped(process)
    assert ended == (0, "The page is closed.\n", "")


def free_port():
    """A port that nobody uses."""
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


@pytest.fixture(scope="module")
def browser():
    """Chromium."""
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


class Opened:
    """The page in a browser, and what went wrong there."""

    def __init__(self, browser, address, **options):
        self.errors, self.elsewhere = [], []
        self.page = browser.new_context(**options).new_page()
        self.page.set_default_timeout(1000 * SECONDS)
        self.page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.note(request.url, address))
        self.page.goto(address)
        self.picture()

    def note(self, url, address):
        if not url.startswith((address, "data:", "blob:", address.replace("http", "ws"))):
            self.elsewhere.append(url)

    def picture(self, name="The warped picture"):
        """A picture of the page."""
        source = self.page.get_by_alt_text(name).get_attribute("src")
        return imagecodecs.png_decode(base64.b64decode(source.partition(",")[2]))

    def until(self, text):
        """Waits until the page shows a text."""
        self.page.get_by_text(text).first.wait_for()

    def slider(self, name):
        """The handle of a slider."""
        return self.page.locator(".bk-input-group", has_text=name).locator(".noUi-handle")


@pytest.fixture
def opened(browser, program):
    found = Opened(browser, program)
    yield found
    assert not found.errors
    assert not found.elsewhere, "the page must work without a network"
    found.page.close()


def test_a_slider_and_the_modes_change_the_picture(opened):
    page, first = opened.page, opened.picture()
    handle = opened.slider("Rotation")
    handle.focus()
    handle.press("ArrowRight")
    opened.until("image, 20.5, scale=1,")
    opened.until("--rotate 20.5 --scale 1")
    turned = opened.picture()
    assert turned.shape == first.shape == (32, 48, 3)
    assert np.any(turned != first)

    page.get_by_label("Filter").select_option("cubic")
    opened.until('filter="cubic"')
    opened.until("No texture unit has the filter cubic.")
    cubic = opened.picture()
    assert np.any(cubic != turned)
    assert page.get_by_label("Arithmetic").locator("option[value=hardware]").is_disabled()

    page.get_by_label("Filter").select_option("linear")
    opened.until("Largest difference")
    np.testing.assert_array_equal(opened.picture(), turned)
    page.get_by_label("Arithmetic").select_option("hardware")
    opened.until('arithmetic="hardware"')
    opened.until("jaxtex warp has no hardware arithmetic.")
    assert opened.picture("The difference").max() > 0
    assert page.get_by_label("Filter").locator("option[value=cubic]").is_disabled()


def test_levels_and_the_copied_call(opened):
    page = opened.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    handle = opened.slider("Level of detail")
    handle.focus()
    for _ in range(10):
        handle.press("ArrowRight")
    opened.until("lod=1)")
    page.get_by_role("button", name="Copy").first.click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("import jaxtex as jt\n")
    assert "warped = jt.sample(chain, coords, sampler, lod=1)" in copied


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_its_window(browser, program, width):
    found = Opened(browser, program, viewport={"width": width, "height": 800}, is_mobile=width < 500)
    assert found.page.evaluate("document.documentElement.scrollWidth") == width
    box = found.page.get_by_alt_text("The warped picture").bounding_box()
    assert 0 <= box["x"] < box["x"] + box["width"] <= width
    found.page.close()


def test_only_this_machine_may_open_the_page(program):
    """A page elsewhere cannot read the picture under a name of its own."""
    host = program.removeprefix("http://")
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    headers |= {"Sec-WebSocket-Key": base64.b64encode(b"0" * 16).decode()}
    answers = {}
    for origin in (host, "elsewhere.example"):
        connection = http.client.HTTPConnection(host, timeout=SECONDS)
        connection.request("GET", "/ws", headers={**headers, "Origin": f"http://{origin}"})
        answers[origin] = connection.getresponse().status
        connection.close()
    assert answers["elsewhere.example"] == 403
    assert answers[host] != 403


def test_a_port_in_use_is_one_sentence(program, tmp_path):
    path, port = save(tmp_path / "in.png", noise(1)), program.rpartition(":")[2]
    command = [sys.executable, "-m", "jaxtex", "explore", path, "--no-browser", "--port", port]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert f"port {port}" in ended.stderr
    assert "choose others with --host and --port" in ended.stderr


def test_sigterm_ends_without_a_traceback(tmp_path):
    process, _, _ = started(save(tmp_path / "in.png", noise(1)))
    code, _, err = stopped(process, signal.SIGTERM)
    assert (code, err) == (143, "jaxtex: error: terminated\n")
