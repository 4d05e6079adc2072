"""What `jaxtex warp` makes of odd files, and what their outputs keep, as Pillow reads it."""

import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image, IptcImagePlugin

from jaxtex.cli.files import codecs, exif
from jaxtex.cli.files.metadata import Metadata, Picture, check_pixels
from jaxtex.cli.options import Options
from jaxtex.cli.process import UserError
from tests.cli import odd_files
from tests.cli.odd_files import ODD_FILES, make
from tests.cli.test_cli import POINT, refused, run

REFUSED = [name for name, odd in ODD_FILES.items() if odd.error]
WARPED = [name for name, odd in ODD_FILES.items() if not odd.error and odd.pages == 1]
SUFFIXES = (".png", ".jpg", ".tif", ".webp")
ORIENTATION = 274


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    for name in ODD_FILES:
        make(name, folder)
    return folder


def facts(path: Path) -> dict[str, object]:
    """What Pillow finds in a file, by the words of the notes; without the orientation, which changes."""
    found: dict[str, object] = {}
    with warnings.catch_warnings(), Image.open(path) as image:
        warnings.simplefilter("ignore")  # of broken EXIF
        image.load()
        tags, info = image.getexif(), image.info
        photo, place = tags.get_ifd(34665), tags.get_ifd(34853)
        camera = {tag: tags.get(tag) for tag in (271, 272, 306) if tag in tags}
        if camera:
            photo = {tag: photo.get(tag) for tag in (36867, 37500, 42036)}
            found["EXIF"] = camera, photo, {tag: place.get(tag) for tag in (1, 2)}
        if b"xmp:Rating" in (info.get("xmp") or b""):
            found["XMP"] = b'xmp:Rating="5"' in info["xmp"]
        elif image.format == "TIFF" and 700 in image.tag_v2:
            found["XMP"] = b'xmp:Rating="5"' in image.tag_v2[700]
        iptc = (IptcImagePlugin.getiptcinfo(image) or {}).get((2, 120))
        found |= {"IPTC": iptc} if iptc else {}
        comment = info.get("comment", image.tag_v2.get(270) if image.format == "TIFF" else None)
        found |= {"comment": comment.encode() if isinstance(comment, str) else comment} if comment else {}
        dpi = info.get("dpi") or (tags.get(282), tags.get(283))
        if dpi[0] and dpi[0] not in (1, 72):  # where nothing is stated, Pillow says 72
            found["resolution"] = round(float(dpi[0])), round(float(dpi[1]))
        texts = {
            name: text for name, text in getattr(image, "text", {}).items() if name in ("Author", "Title", "Comment")
        }
        found |= {"PNG text": texts} if texts else {}
        found |= {"gAMA": info["gamma"]} if "gamma" in info and "srgb" not in info else {}
        if path.suffix == ".png" and b"cICP" in path.read_bytes():
            found["cICP"] = path.read_bytes().split(b"cICP")[1][:4]
        found |= {"profile": info["icc_profile"]} if info.get("icc_profile") else {}
        if b"ICCRGBG1012" in path.read_bytes():  # a GIF has it in parts of 255 bytes, of which this is in the first
            found["profile"] = odd_files.RGB_PROFILE if odd_files.RGB_PROFILE[:255] in path.read_bytes() else None
        if b"XMP DataXMP" + odd_files.XMP % 1 + bytes((1, 255, 254)) in path.read_bytes():
            found["XMP"] = True
    return found


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_picture_is_refused_in_a_sentence(folder, tmp_path, capfd, name):
    """Also on the descriptor, to which C libraries write past Python."""
    target = tmp_path / ("out.png" if ODD_FILES[name].pages == 1 else "out.tif")
    err = refused(capfd, "warp", folder / name, target)
    assert err.startswith(f"cannot read {folder / name}")
    assert ODD_FILES[name].error in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", WARPED)
def test_metadata_is_kept_or_named(folder, tmp_path, name):
    source, odd = folder / name, ODD_FILES[name]
    with codecs.silence_codecs():
        picture = codecs.read_picture(source)
    height, width = picture.pixels.shape[:2]
    before = facts(source)
    for suffix in SUFFIXES:
        target = tmp_path / f"out{suffix}"
        notes = "; ".join(codecs.write_picture(target, picture, Options()))
        assert bool(notes) == (suffix in odd.notes), (suffix, notes)
        assert odd.notes.get(suffix, "") in notes
        after = facts(target)
        assert {key: value for key, value in before.items() if key not in notes} == {
            key: value for key, value in after.items() if key in before and key not in notes
        }, suffix
        assert odd_files.THUMBNAIL not in target.read_bytes()
        with Image.open(target) as image:
            tags = image.getexif()
            assert image.size == (width, height)
            assert tags.get(ORIENTATION, 1) == 1
            assert not tags.get_ifd(1)
            photo = tags.get_ifd(34665)
            assert (photo.get(40962, width), photo.get(40963, height)) == (width, height)
            assert codecs.read_picture(target).pixels.shape == (height, width, len(image.getbands()))


def test_strip_leaves_colors_alone(folder, tmp_path):
    names = "turned.jpg", "comment and description.jpg", "iptc.jpg", "texts.png", "profile.jpg", "resolution.png"
    for suffix in SUFFIXES:
        for name in names:
            target = tmp_path / f"{name}{suffix}"
            picture = codecs.read_picture(folder / name)
            assert codecs.write_picture(target, picture, Options(strip=True)) == ()
            assert facts(target).keys() == ({"profile"} if name == "profile.jpg" else set())
        picture = codecs.read_picture(folder / "gamma.png")
        notes = codecs.write_picture(tmp_path / f"gamma{suffix}", picture, Options(strip=True))
        assert bool(notes) == (suffix != ".png")
    assert facts(tmp_path / "gamma.png") == {"gAMA": 1.0}


def test_a_makers_note_stays_where_it_is_and_xmp_states_what_the_output_is():
    """Its offsets count from the beginning of EXIF."""
    for order in "<>":
        before = odd_files.exif(6, order, odd_files.THUMBNAIL)
        after = exif.update(before, (5, 4))
        assert after.index(odd_files.MAKER_NOTE) == before.index(odd_files.MAKER_NOTE)
        assert odd_files.THUMBNAIL not in after
        tags = Image.Exif()
        tags.load(after)
        assert (tags[ORIENTATION], tags.get_ifd(34665)[40962], tags.get_ifd(34665)[40963]) == (1, 5, 4)
    before = b"<a tiff:Orientation='6' exif:PixelXDimension=\"600\"><tiff:ImageLength>40</tiff:ImageLength>"
    before += b"<xmp:Thumbnails><b>/9j/</b>\n</xmp:Thumbnails></a>"
    after = b"<a tiff:Orientation='1' exif:PixelXDimension=\"30\"><tiff:ImageLength>2000</tiff:ImageLength></a>"
    assert exif.update_xmp(before, (30, 2000)) == after


def test_directories_survive_any_damage():
    """Every shorter stream and every changed byte: what can still be read is written."""
    stream, random = odd_files.exif(6, ">", odd_files.THUMBNAIL), np.random.default_rng(0)
    damaged = [stream[:k] for k in range(0, len(stream), 5)]
    for at, byte in zip(random.integers(4, len(stream), 300), random.integers(256, size=300)):
        damaged.append(stream[:at] + bytes([byte]) + stream[at + 1 :])
    for data in damaged:
        picture = Picture(odd_files.pixels(), metadata=Metadata(exif=data))
        assert picture.metadata.orientation >= 0
        for file_format in ("TIFF", "JPEG"):
            codecs.encode(codecs.fit_picture(picture, file_format), file_format)


def test_a_big_tiff_keeps_its_tags(tmp_path):
    path = tmp_path / "in.tif"
    for order in "<>":
        tags = [(315, 2, 0, "Ada", True), (42000, 4, 3, (7, 8, 2**31), True)]
        tifffile.imwrite(path, odd_files.pixels(), photometric="rgb", bigtiff=True, byteorder=order, extratags=tags)
        codecs.write_picture(tmp_path / "out.tif", codecs.read_picture(path), Options())
        with tifffile.TiffFile(tmp_path / "out.tif") as out:
            assert out.pages.first.tags[315].value == "Ada"
            assert out.pages.first.tags[42000].value == (7, 8, 2**31)
            np.testing.assert_array_equal(out.asarray(), odd_files.pixels())


SHAPE, MORE = '{"shape": [6, 9, 3]}', '{"shape": [6, 9, 3], "place": "Ulm"}'

DESCRIPTIONS = (
    (("Noon", SHAPE), "Noon", ()),
    ((SHAPE, "Noon"), "Noon", ()),
    (("Noon", MORE), "Noon", ("machine-written description",)),
    (("ImageJ=1.5", "Noon"), "Noon", ("machine-written description",)),
    (("Noon", "Night"), "Noon", ("second description",)),
    ((SHAPE,), None, ()),
    ((MORE,), None, ("machine-written description",)),
)


def test_of_several_descriptions_none_vanishes(tmp_path):
    """tifffile writes its own behind that of the user."""
    for texts, kept, lost in DESCRIPTIONS:
        tags = [(270, 2, 0, text, True) for text in texts]
        tifffile.imwrite(tmp_path / "in.tif", odd_files.pixels(), photometric="rgb", metadata=None, extratags=tags)
        notes = codecs.write_picture(tmp_path / "out.tif", codecs.read_picture(tmp_path / "in.tif"), Options())
        assert notes == tuple(f"is written as TIFF without its {what}" for what in lost)
        with tifffile.TiffFile(tmp_path / "out.tif") as out:
            assert [tag.value for tag in out.pages.first.tags if tag.code == 270] == [kept][: kept is not None]


def test_a_header_is_enough_to_refuse(folder, monkeypatch):
    """No pixel is decoded, and no file read to its end."""
    for name in ("decode", "decode_tiff"):
        monkeypatch.setattr(codecs, name, lambda *_: pytest.fail("decoded"))
    seen = []
    for name in ("exif.jpg", "texts.png", "exif.tif", "exif.webp"):
        with pytest.raises(UserError, match="--max-pixels"):
            codecs.read_picture(folder / name, lambda size: (seen.append(size), check_pixels(size, 50)))
        upright = name not in ("exif.tif", "exif.webp")  # which are turned
        assert seen[-1] == ((odd_files.WIDTH, odd_files.HEIGHT) if upright else (odd_files.HEIGHT, odd_files.WIDTH))


def test_cmyk_is_converted_by_its_profile(folder):
    """The profile says that ink of half a weight is half as light and gray; without it, red is red."""
    by_profile = codecs.read_picture(folder / "cmyk with profile.jpg").pixels[3, 4].astype(int)
    plain = codecs.read_picture(folder / "cmyk.jpg").pixels[3, 4].astype(int)
    assert np.ptp(by_profile) <= 4
    assert 100 < by_profile.mean() < 140  # L* = 50
    assert plain[0] > 245
    assert plain[1:].max() < 10


def sources_of_all() -> dict[str, bytes]:
    """A file of each format with all that it may hold."""
    o, exif, xmp, iptc = odd_files, odd_files.exif(), odd_files.XMP % 1, odd_files.IPTC
    segments = o.exif_segment(), o.xmp_segment(), o.iptc_segment(), o.segment(0xEB, b"JP\0\1")
    texts = b"XML:com.adobe.xmp" + bytes(5) + xmp, b"Author\0" + o.AUTHOR.encode(), b"Comment\0" + o.COMMENT
    chunks = {b"eXIf": exif, b"iTXt": texts[0], b"pHYs": struct.pack(">IIB", 11811, 11811, 1), b"caBX": b"signed"}
    chunks |= {b"iCCP": b"ICC profile\0\0" + zlib.compress(o.RGB_PROFILE), b"cICP": o.CICP}
    chunks = [*chunks.items(), *((b"tEXt", text) for text in texts[1:])]
    tags = [(271, 2, 0, "Maker", True), (700, 1, len(xmp), xmp, True), (33723, 7, len(iptc), iptc, True)]
    tags += [(33550, 12, 3, (1.0, 1.0, 0.0), True)]
    options = {"iccprofile": o.RGB_PROFILE, "resolution": (300, 300), "resolutionunit": "INCH", "extratags": tags}
    return {
        "PNG": o.png(*(o.chunk(name, body) for name, body in chunks)),
        "JPEG": o.jpeg(3, *segments, icc_profile=o.RGB_PROFILE, comment=o.COMMENT, dpi=(300, 300)),
        "TIFF": o.tiff(o.pixels(), photometric="rgb", **options),
        "WebP": o.save_webp(exif=exif, xmp=xmp, icc_profile=o.RGB_PROFILE),
        "GIF": o.gif(xmp=xmp, profile=o.RGB_PROFILE),
    }


SUFFIX_OF = {"PNG": ".png", "JPEG": ".jpg", "TIFF": ".tif", "WebP": ".webp", "GIF": ".gif"}
# The words of the table, as `facts` and notes have them.
FACTS_OF_ROWS = {"color profile": "profile", "texts": "PNG text", "gAMA, cHRM, cICP": "cICP"}


def table_of_the_guide() -> dict[str, dict[str, str]]:
    """The rows of the table, by what is kept: a word for each column."""
    text = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    lines = text[text.index("| kept |") :].split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(rows[0][1:], row[1:])) for row in rows[2:]}


@pytest.mark.parametrize("source", SUFFIX_OF)
def test_the_table_of_the_guide_is_what_the_program_does(tmp_path, capsys, source):
    """Each row that is "yes" is found in the output, and each that is "no" is named in the note."""
    path, same, table = tmp_path / f"in{SUFFIX_OF[source]}", f"{source} to {source}", table_of_the_guide()
    path.write_bytes(sources_of_all()[source])
    before = facts(path)
    for target, suffix in SUFFIX_OF.items():
        code, _, err = run(capsys, "warp", path, tmp_path / f"out{suffix}", *POINT)
        after = facts(tmp_path / f"out{suffix}")
        assert code == 0
        for name, cells in table.items():
            column = same if source == target else "to GIF" if target == "GIF" else "to another format"
            cell, fact = cells[column], FACTS_OF_ROWS.get(name, name)
            assert not cells[same] or cell in ("yes", "no")
            if not cells[same]:
                assert fact not in before, name
            elif cell == "yes":
                assert after[fact] == before[fact], name
            else:
                assert fact not in after, name
                assert fact in err, name


def test_photoshop_data_loses_its_thumbnail_alone(tmp_path):
    resource = lambda number, data: b"8BIM" + struct.pack(">HHI", number, 0, len(data)) + data + bytes(len(data) % 2)
    parts = resource(0x0404, odd_files.IPTC), resource(0x040C, odd_files.THUMBNAIL), resource(2000, b"path")
    (tmp_path / "in.jpg").write_bytes(odd_files.jpeg(3, odd_files.segment(0xED, b"Photoshop 3.0\0" + b"".join(parts))))
    assert codecs.write_picture(tmp_path / "out.jpg", codecs.read_picture(tmp_path / "in.jpg"), Options()) == ()
    data = (tmp_path / "out.jpg").read_bytes()
    assert odd_files.THUMBNAIL not in data
    assert parts[0] + parts[2] in data


@pytest.mark.parametrize(("unit", "dots"), [(1, (300, 150)), (2, (118, 59)), (0, (2, 1))])
def test_a_density_of_any_unit_is_copied_and_turned(tmp_path, unit, dots):
    data = bytearray(odd_files.jpeg(3, odd_files.exif_segment(6)))
    data[13:18] = struct.pack(">BHH", unit, *dots)
    (tmp_path / "in.jpg").write_bytes(data)
    picture = codecs.read_picture(tmp_path / "in.jpg")
    codecs.write_picture(tmp_path / "out.jpg", picture, Options())
    assert (tmp_path / "out.jpg").read_bytes()[13:18] == struct.pack(">BHH", unit, *dots[::-1])
    codecs.write_picture(tmp_path / "out.png", picture, Options())
    with Image.open(tmp_path / "out.png") as image:
        assert ("dpi" in image.info) == (unit > 0)
        assert not unit or tuple(map(round, image.info["dpi"])) == (150, 300)


def test_exif_in_old_text_of_a_png_turns_it(tmp_path):
    """As hexadecimal digits; compressed or not."""
    text = b"\nexif\n      99\n" + (b"Exif\0\0" + odd_files.exif(6)).hex().encode() + b"\n"
    packed = zlib.compress(text)
    for name, body in ((b"zTXt", b"\0" + packed), (b"tEXt", text), (b"iTXt", b"\1\0\0\0" + packed)):
        (tmp_path / "in.png").write_bytes(odd_files.png(odd_files.chunk(name, b"Raw profile type exif\0" + body)))
        picture = codecs.read_picture(tmp_path / "in.png")
        assert picture.pixels.shape[:2] == (odd_files.WIDTH, odd_files.HEIGHT)
        codecs.write_picture(tmp_path / "out.png", picture, Options())
        with Image.open(tmp_path / "out.png") as image:
            assert (image.getexif()[ORIENTATION], image.getexif()[272]) == (1, odd_files.MODEL)
            assert "Raw profile type exif" not in image.info
