"""The documentation site, built once: no warning, every name in the reference, and a browser that uses its pages.

It needs the extra `docs` and Chromium, and is skipped without them.
"""

import functools
import html
import http.server
import importlib
import inspect
import re
import shutil
import subprocess
import sys
import threading
import zlib

import pytest

import jaxtex
from tests.house.test_house import PUBLIC, ROOT

pytest.importorskip("sphinx_book_theme", reason="needs the extra docs")
pytest.importorskip("myst_nb", reason="needs the extra docs")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
CUDA = [f"cuda.{name}" for name in importlib.import_module("jaxtex.cuda").__all__]
SHARDED = [f"sharded.{name}" for name in jaxtex.sharded.__all__]
LAYERS = ["layers.theta_of", "layers.nnx.SpatialTransformer", "layers.equinox.SpatialTransformer"]


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The built site, and what its build wrote."""
    out = tmp_path_factory.mktemp("site") / "html"
    command = [sys.executable, "-m", "docs", "build", "--out", str(out)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return out, result


@pytest.fixture(scope="session")
def site(built):
    out, result = built
    if result.returncode:
        pytest.skip("the site has warnings, which another test shows")
    return out


def test_the_site_builds_without_a_warning(built):
    _, result = built
    assert result.returncode == 0, result.stderr
    # The kernel that runs the tutorial says how it is connected.
    assert not [line for line in result.stderr.splitlines() if "WARNING" in line and "[IPKernelApp]" not in line]


def names_in(inventory):
    *header, body = inventory.read_bytes().split(b"\n", 4)
    assert len(header) == 4
    return {line.split(" ")[0] for line in zlib.decompress(body).decode().splitlines() if " py:" in line}


def test_every_public_name_is_in_the_reference(site):
    public = {f"jaxtex.{name}" for name in (*PUBLIC, *CUDA, *SHARDED, *LAYERS)}
    for cls in (jaxtex.Texture, jaxtex.Sampler):
        members = {name for name, value in vars(cls).items() if isinstance(value, property) and name[0] != "_"}
        public |= {f"jaxtex.{cls.__name__}.{name}" for name in members}
    assert not sorted(public - names_in(site / "objects.inv"))


def test_the_reference_shows_the_sections_of_docstrings(site):
    page = text_of(site / "api" / "reads.html")
    documented = inspect.getdoc(jaxtex.sample)
    for section, words in re.findall(r"^(Gradients|Precision|Source): (.*)", documented, re.MULTILINE):
        assert f"{section}:" in page
        assert re.sub(r"`+", "", words).split("`")[0][:40] in page
    assert all(section in page for section in ("Parameters:", "Raises:", "Example"))
    # Types have short names, and defaults are as a caller writes them.
    assert "Literal[" not in page
    assert "sampler=Sampler()" in page


def text_of(page):
    """The text of a page, with plain quotation marks."""
    text = html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))
    return re.sub(r"\s+", " ", text.translate(str.maketrans("“”‘’", "\"\"''")))


def pages_of(site):
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def links_in(page):
    links = (link.partition("#")[0] for link in re.findall(r'href="([^":]+)"', page.read_text()))
    return {(page.parent / link).resolve() for link in links if link.endswith(".html")}


def test_every_page_is_reached_from_the_first(site):
    reached, front = set(), {(site / "index.html").resolve()}
    while front:
        reached |= front
        front = set().union(*map(links_in, front)) - reached
    assert not [path for path in reached if not path.exists()]
    assert {path.resolve() for path in pages_of(site)} <= reached


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *message):
        pass


@pytest.fixture(scope="session")
def address(site):
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the extra docs")
    if CHROMIUM is None:
        pytest.skip("needs Chromium in the path")
    with playwright.sync_playwright() as drivers:
        browser = drivers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, address):
    """Opens pages, each in a window of its own, and fails if a script or a file of the site does."""
    problems, contexts = [], []

    def open_page(path, size=DESKTOP, scheme="light"):
        context = chromium.new_context(viewport=size, color_scheme=scheme)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
        contexts.append(context)
        page = context.new_page()
        # Other sites cannot be reached from everywhere: what comes from there is not waited for.
        page.route(lambda url: not url.startswith(address), lambda route: route.abort())
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("response", lambda answer: answer.status >= 400 and problems.append(answer.url))
        page.goto(f"{address}/{path}", wait_until="load")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not problems


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_the_window_of_a_phone(visit, site, address, scheme):
    page = visit("index.html", PHONE, scheme)
    assert page.locator("html").get_attribute("data-theme") == scheme
    paths = [path.relative_to(site).as_posix() for path in pages_of(site) if "source" not in path.parts]
    wide = []
    for path in paths if scheme == "light" else paths[:5]:
        page.goto(f"{address}/{path}", wait_until="domcontentloaded")
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(path)
    assert not wide


def search(page, words):
    page.locator(".search-button__button, .search-button").locator("visible=true").first.click()
    field = page.locator("#pst-search-dialog input[type=search]")
    field.fill(words)
    field.press("Enter")
    page.locator(".search-summary", has_text="finished").wait_for()  # the list grows until then
    found = page.locator("#search-results ul.search li a")
    return found.evaluate_all("links => links.map(link => link.getAttribute('href'))")


# What is searched for, and where the first result leads.
SEARCHES = {
    "anisotropy footprint": "cubemaps-and-mipmaps",
    "hessian": "reading",
    "thin_plate_spline": "api/warp-maps",
    "TypeError: sample: texture is an array of shape (480, 640, 3), expected a Texture;": "errors",
    "there is no device gpu:7; the devices are cpu:0": "errors",
    "rotate: image has shape (1080, 1920), expected (..., H, W, C); add an axis for a single channel": "errors",
}


@pytest.mark.parametrize("words", SEARCHES)
def test_search_finds_a_page_by_its_words_or_a_pasted_error(visit, words):
    """A guide in front of the changelog."""
    pages = [re.split(r"[?#]", link)[0] for link in search(visit("index.html", PHONE), words)]
    places = [k for k, page in enumerate(pages) if page.endswith(f"{SEARCHES[words]}.html")]
    assert places
    assert places[0] == 0 if SEARCHES[words] == "errors" else "contributing/changelog.html" not in pages[: places[0]]


def test_the_copy_button_leaves_prompts_and_results_out(visit):
    page = visit("api/reads.html")
    block = page.locator("div.highlight", has_text=">>> ").first
    block.hover()
    block.locator("button.copybtn").click()
    page.wait_for_function("navigator.clipboard.readText().then(text => text.length > 0)")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "jt.sample(ramp" in copied
    assert not re.search(r">>>|Array\(", copied)


def test_the_gallery_shows_every_picture(visit, site):
    page = visit("examples.html")
    pictures = page.locator("article img")
    # They are loaded when they come into view.
    for index in range(pictures.count()):
        pictures.nth(index).scroll_into_view_if_needed()
    page.wait_for_function("[...document.querySelectorAll('article img')].every(image => image.complete)")
    loaded = pictures.evaluate_all("images => images.map(image => [image.src, image.naturalWidth, image.alt])")
    assert loaded
    assert not [source for source, width, words in loaded if not width or not words]
    linked = set(re.findall(r'href="source/examples/(\w+)\.html"', (site / "examples.html").read_text()))
    described = re.findall(r"\.\./examples/(\w+)\.py", (ROOT / "docs" / "examples.md").read_text())
    assert set(described) == linked
