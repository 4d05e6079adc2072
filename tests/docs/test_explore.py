"""The example `explore`: what it shows and writes without a browser, and its page in one.

The page is skipped where Panel (the extra `explore`), Playwright or Chromium is missing.
"""

import base64
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import imagecodecs
import jax
import numpy as np
import pytest

import jaxtex
from jaxtex.cli import main
from tests.cli.test_cli import noise, save
from tests.docs.test_examples import EXAMPLES, load

WIDTH, HEIGHT = 24, 16
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SECONDS = 120  # for anything, on a busy machine
explore = load("explore")
View = explore.View
VIEWS = [
    View(degrees=-30.0, tilt=50.0, address_mode="wrap"),
    View(filter_mode="cubic", scale=0.7),
    View(arithmetic="hardware"),
]
VIEWS += [View(tilt=20.0, antialias=True)]

pytestmark = pytest.mark.usefixtures("default_promotion")


@pytest.fixture
def path(tmp_path):
    return save(tmp_path / "in put.png", noise(3, height=HEIGHT, width=WIDTH))


@pytest.mark.parametrize("view", VIEWS)
def test_the_call_and_the_command_make_the_picture(path, view, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    image = explore.read_image(path, 480)
    scope = {"jt": jaxtex, "np": np, "image": image}
    exec(explore.call(view, image), scope)
    shown = np.asarray(explore.to_bytes(explore.warped(image, view)))
    assert len(np.unique(shown)) > 30
    np.testing.assert_array_equal(scope["warped"], shown)
    if view.arithmetic == "hardware" or view.antialias:  # by several reads in the command
        return
    program, *arguments = shlex.split(explore.command(view, path))
    assert program == "jaxtex"
    assert main(arguments) == 0
    made = imagecodecs.png_decode((tmp_path / "warped.png").read_bytes()).astype(int)
    # The command rounds its own inverse of the matrix: values at the edge of rounding may change.
    assert np.abs(made - shown).max() <= 1


def test_what_there_is_none_of(path):
    image = explore.read_image(path, 480)
    assert explore.command(View(arithmetic="hardware"), path) is None
    assert explore.command(View(antialias=True, filter_mode="point"), path) is None
    assert explore.difference(image, View(filter_mode="cubic")) is None
    assert 0 < explore.difference(image, View(degrees=13.0)).max() < 2
    assert explore.difference(image, View(degrees=0.0)).max() == 0


def test_a_slider_compiles_nothing(path, caplog):
    image = explore.read_image(path, 480)
    for first, second in ((View(1.0, 0.5), View(77.0, 3.0)), (View(tilt=50.0), View(5.0, 2.0, 20.0))):
        explore.warped(image, first)
        caplog.clear()
        with jax.log_compiles():
            explore.warped(image, second)
        assert "Compiling" not in caplog.text


def test_a_large_image_is_reduced_and_the_horizon_stays_out(path):
    assert explore.read_image(path, 12).shape == (8, 12, 3)
    for width, height in ((480, 320), (320, 480), (480, 1)):
        matrix = explore.matrix_of(View(40.0, 0.05, explore.LARGEST_TILT), width, height)
        corners = np.array([(0, 0, 1), (width, 0, 1), (width, height, 1), (0, height, 1)], float)
        assert (np.linalg.inv(matrix)[2] @ corners.T > 0).all()


def test_without_panel_it_ends_with_a_sentence(path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "panel", None)
    with pytest.raises(SystemExit, match="2"):
        explore.main([str(path)])
    assert "pip install '.[explore]'" in capsys.readouterr().err


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_the_page_in_a_browser(path):
    """It shows the picture, follows a slider, and needs no other server."""
    pytest.importorskip("panel", reason="needs Panel, of the extra explore")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(EXAMPLES["explore"]), str(path), "--no-browser", "--port", str(port)]
    root = Path(jaxtex.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *sys.path]), "JAX_PLATFORMS": "cpu"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://[\d.:]+", process.stdout.readline())[0]
        with playwright.sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            opened, elsewhere = browser.new_page(), []
            opened.set_default_timeout(1000 * SECONDS)
            opened.on("request", lambda request: elsewhere.append(request.url) if address not in request.url else None)
            for _ in range(SECONDS):
                try:
                    opened.goto(address)
                    break
                except playwright.Error:
                    opened.wait_for_timeout(1000)
            picture = opened.get_by_alt_text("The warped picture")
            first = picture.get_attribute("src")
            assert imagecodecs.png_decode(base64.b64decode(first.partition(",")[2])).shape == (HEIGHT, WIDTH, 3)
            handle = opened.locator(".bk-input-group", has_text="Rotation").locator(".noUi-handle")
            handle.focus()
            handle.press("ArrowRight")
            opened.get_by_text("--rotate 20.5").first.wait_for()
            assert picture.get_attribute("src") != first
            assert not [
                url for url in elsewhere if not url.startswith(("data:", "blob:", address.replace("http", "ws")))
            ]
            browser.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=SECONDS)
