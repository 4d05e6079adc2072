"""Life around the command line: runs stopped and continued, full disks, permissions, links, pipes, settings of JAX."""

import errno
import gc
import io
import os
import signal
import stat
import subprocess
import sys
import types
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest
from PIL import Image

import jaxtex
from jaxtex.cli import main, pipeline
from jaxtex.cli.files import replace
from jaxtex.cli.jax_start import check_xla_flags, refused_settings
from jaxtex.cli.process import Stopped, UserError, check_stopped, printable, stoppable
from tests.cli.test_cli import POINT, done, failing_at, listing, load, noise, raising, refused, run, save
from tests.cli.test_cli_warps import CONTINUE, folder_of


def start(*arguments: object, code: str = "", **environment: str) -> subprocess.Popen:
    """`jaxtex` in a process of its own, after other code."""
    script = f"import runpy, sys\n{code}\nrunpy.run_module('jaxtex', run_name='__main__', alter_sys=True)"
    environment = os.environ | {"PYTHONPATH": str(Path(jaxtex.__file__).parents[1])} | environment
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], **how)


def test_what_is_there_is_skipped(tmp_path, capsys):
    folder, out = folder_of(tmp_path, 3), tmp_path / "out"
    assert run(capsys, "warp", folder, out)[0] == 0
    (out / "01.png").unlink()
    (folder / "02.png").unlink()
    assert "1 warped, 0 failed, 1 skipped whose output exists: " in done(capsys, "warp", folder, out, "--skip-existing")
    (out / "01.png").unlink()
    report = done(capsys, "warp", folder, out, "--no-clobber", "--verbose").splitlines()
    assert report[0] == f"{out / '00.png'} exists, 00.png is skipped"
    assert [len(report), "1 warped, 0 failed, 1 skipped" in report[-1]] == [3, True]
    before = (out / "00.png").read_bytes()
    assert "is skipped" in done(capsys, "warp", folder / "01.png", out / "00.png", "--no-clobber")
    assert (out / "00.png").read_bytes() == before
    code, report, errors = run(capsys, "warp", folder / "00.png", out, "--skip-existing")
    assert (code, report, errors) == (0, f"{out / '00.png'} exists, 00.png is skipped\n", "")


def test_outputs_are_named_by_a_template(tmp_path, capsys):
    """By the input, its number, and the size of the output; a file that cannot be read stops no other."""
    folder, out = folder_of(tmp_path, 3), tmp_path / "out"
    (folder / "sub").mkdir()
    save(folder / "sub" / "{stem}.tif", noise(3, height=3, width=20))
    for name in ("00.png", "02.png"):
        save(folder / name, noise(3))
    (folder / "01.png").write_bytes(b"broken")
    template = "{stem}_{number:03}-{width}x{height}{suffix}"
    code, report, err = run(capsys, "resize", folder, out, "--name", template, "--recursive", "--size", "10", *POINT)
    assert (code, err.count("\n"), "3 warped, 1 failed" in report) == (2, 1, True)
    assert [str(path.relative_to(out)) for path in sorted(out.rglob("*.*"))] == [
        "00_001-10x7.png",
        "02_003-10x7.png",
        "sub/{stem}_004-10x2.tif",
    ]
    done(capsys, "warp", folder / "00.png", out, "--name", "x{number}.webp", *POINT)
    np.testing.assert_array_equal(load(out / "x1.webp"), load(folder / "00.png"))
    done(capsys, "warp", folder / "00.png", out, "--name", "{height}{width}{suffix}", "--format", "tif", "--compare")
    assert load(out / "618.tif").shape == (6, 18, 3)


def test_temporary_files_of_the_dead_are_removed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(replace, "STALE_SECONDS", -1)
    folder, out = folder_of(tmp_path, 1), tmp_path / "out"
    out.mkdir()
    dead, living = (out / f".jaxtex-{k}.part" for k in (1, 2))
    for path in (dead, living):
        path.write_bytes(b"half")
    with living.open("rb") as file:
        replace.hold(file.fileno())
        assert run(capsys, "warp", folder, out)[0] == 0
        assert listing(out) == [living.name, "00.png"]


def test_a_signal_is_an_interrupt(tmp_path, capsys, monkeypatch):
    """While an image is read: nothing is written."""
    source, read = save(tmp_path / "in.png", noise(3)), pipeline.read_picture
    for number, code, word in ((signal.SIGTERM, 143, "terminated"), (signal.SIGHUP, 129, "hung up")):
        raised = lambda *some, number=number: (signal.raise_signal(number), read(*some))[1]
        monkeypatch.setattr(pipeline, "read_picture", raised)
        outer = signal.signal(number, signal.SIG_DFL)  # which a process without a terminal may ignore
        try:
            got = run(capsys, "warp", source, tmp_path / "out.png")
            after = signal.getsignal(number)
        finally:
            signal.signal(number, outer)
        assert got == (code, "", f"jaxtex: error: {word}\n")
        assert (listing(tmp_path), after) == (["in.png"], signal.SIG_DFL)


def test_a_signal_in_a_callback_of_the_garbage_collector_is_not_lost():
    """Python drops what is raised there."""
    callback = lambda phase, _: signal.raise_signal(signal.SIGTERM) if phase == "start" else None

    def collect():
        with stoppable():
            gc.callbacks.append(callback)
            gc.collect()
            gc.callbacks.remove(callback)
            check_stopped()

    with pytest.raises(Stopped):
        collect()


def test_a_full_disk_ends_the_run(tmp_path, capsys, monkeypatch):
    folder, out, full = folder_of(tmp_path, 60), tmp_path / "out", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(pipeline, "THREADS", 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing_at(range(6, 99), full, os.replace))
        words = refused(capsys, "warp", folder, out, *POINT)
    assert words == f"cannot write {out / '05.png'}: No space left on device; {CONTINUE}\n"
    assert listing(out) == listing(folder)[:5]
    assert "55 warped, 0 failed, 5 skipped" in done(capsys, "warp", folder, out, *POINT, "--resume")


def test_an_image_too_large_for_the_memory_leaves_the_others_alone(tmp_path, capsys, monkeypatch):
    folder, hungry = folder_of(tmp_path, 3), MemoryError("Unable to allocate 1 PiB")
    monkeypatch.setattr(pipeline, "THREADS", 1)
    for step in ("read_picture", "warp", "write_picture"):
        with monkeypatch.context() as patch:
            patch.setattr(pipeline, step, failing_at([2], hungry, getattr(pipeline, step)))
            code, report, errors = run(capsys, "warp", folder, tmp_path / step, *POINT)
        assert (code, "2 warped, 1 failed" in report, errors.count("\n")) == (2, True, 1)
        assert "01.png: it needs more memory than there is (Unable to allocate 1 PiB)" in errors


def test_nothing_in_a_folder_is_passed_over_in_silence(tmp_path, capsys):
    folder = folder_of(tmp_path, 1)
    os.mkfifo(folder / "pipe.png")
    (folder / "dangling.jpg").symlink_to("nowhere.jpg")
    (folder / "._00.png").write_bytes(b"of a Mac")
    for name in ("raw.nef", "phone.avif", "notes.txt"):
        (folder / name).write_bytes(b"")
    code, report, errors = run(capsys, "warp", folder, tmp_path / "out")
    assert (code, "1 warped, 2 failed" in report) == (2, True)
    note, *lines = errors.splitlines()
    assert note == f"jaxtex: note: {folder} holds 2 files of other kinds, which are left out: phone.avif, raw.nef"
    assert [line.split(": ", 2)[2] for line in lines] == [
        f"cannot read {folder / 'dangling.jpg'}: No such file or directory",
        f"cannot read {folder / 'pipe.png'}: it is a named pipe, not a regular file",
    ]


def test_a_subfolder_that_cannot_be_read_is_named(tmp_path, capsys, monkeypatch):
    folder, scan = folder_of(tmp_path, 1), os.scandir
    for name in ("closed", "open"):
        (folder / name).mkdir()
        save(folder / name / "a.png", noise(3))

    def guarded(path):
        if Path(path) == folder / "closed":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", guarded)
    code, report, errors = run(capsys, "warp", folder, tmp_path / "out", *POINT, "--recursive")
    assert (code, "2 warped, 0 failed" in report) == (0, True)
    assert errors == f"jaxtex: note: the folder {folder / 'closed'} cannot be read and is left out: Permission denied\n"
    code, _, errors = run(capsys, "warp", folder / "closed", tmp_path / "out")
    assert errors == f"jaxtex: error: cannot read the folder {folder / 'closed'}: Permission denied\n"


def test_a_path_that_cannot_be_looked_at_is_a_sentence(tmp_path, capsys, monkeypatch):
    """As below a folder that may not be entered."""
    for number in (errno.EACCES, errno.ENAMETOOLONG):
        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", raising(OSError(number, os.strerror(number))))
            code, _, errors = run(capsys, "warp", tmp_path / "in.png", tmp_path / "out.png")
        assert (code, errors) == (2, f"jaxtex: error: cannot read {tmp_path / 'in.png'}: {os.strerror(number)}\n")


def test_a_new_file_has_the_permissions_that_cp_gives(tmp_path):
    source, target = save(tmp_path / "in.png", noise(3)), tmp_path / "out.png"
    for mode, mask, new in ((0o644, 0o022, 0o644), (0o600, 0o022, 0o600), (0o664, 0o027, 0o640), (0o444, 0o022, 0o444)):
        source.chmod(mode)
        before = os.umask(mask)
        try:
            assert main(["warp", str(source), str(target), *POINT]) == 0
        finally:
            os.umask(before)
        assert stat.S_IMODE(target.stat().st_mode) == new
        target.unlink()


def test_a_replaced_file_keeps_its_permissions(tmp_path, capsys):
    source, target = save(tmp_path / "in.png", noise(3)), save(tmp_path / "out.png", noise(1))
    target.chmod(0o640)
    try:
        os.setxattr(target, "user.tag", b"red")
        tagged = True
    except OSError:  # a file system without attributes
        tagged = False
    assert run(capsys, "warp", source, target, *POINT)[0] == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert not tagged or os.getxattr(target, "user.tag") == b"red"
    np.testing.assert_array_equal(load(target), noise(3))


def test_a_read_only_file_is_replaced_only_by_force(tmp_path, capsys):
    source, target = save(tmp_path / "in.png", noise(3)), save(tmp_path / "out.png", noise(1))
    target.chmod(0o444)
    words = refused(capsys, "warp", source, target, *POINT)
    assert words == f"cannot write {target}: it is read-only; --force replaces it\n"
    np.testing.assert_array_equal(load(target), noise(1))
    assert run(capsys, "warp", source, target, *POINT, "--force")[0] == 0
    np.testing.assert_array_equal(load(target), noise(3))
    assert stat.S_IMODE(target.stat().st_mode) == 0o444


def test_other_names_of_a_file_keep_the_old_picture(tmp_path, capsys):
    source, target = save(tmp_path / "in.png", noise(3)), save(tmp_path / "out.png", noise(1))
    os.link(target, tmp_path / "backup.png")
    code, _, errors = run(capsys, "warp", source, target, *POINT)
    assert (code, errors.count("\n")) == (0, 1)
    assert "had another name; the old picture stays there" in errors
    np.testing.assert_array_equal(load(tmp_path / "backup.png"), noise(1))


def test_a_link_stays_a_link_into_another_folder(tmp_path, capsys):
    source, other = save(tmp_path / "in.png", noise(3)), tmp_path / "other"
    other.mkdir()
    link = tmp_path / "link.png"
    link.symlink_to("other/far.png")
    for _ in range(2):  # the link leads nowhere, then to a file
        assert run(capsys, "warp", source, link, *POINT)[0] == 0
        assert (link.is_symlink(), listing(other)) == (True, ["far.png"])
    np.testing.assert_array_equal(load(other / "far.png"), noise(3))


def test_times_are_kept_on_request(tmp_path, capsys):
    source, target = save(tmp_path / "in.png", noise(3)), tmp_path / "out.png"
    os.utime(source, ns=(10**18, 10**18 + 7))
    assert run(capsys, "warp", source, target)[0] == 0
    assert target.stat().st_mtime_ns > 10**18 + 7
    assert run(capsys, "warp", source, target, "--preserve-times")[0] == 0
    assert target.stat().st_mtime_ns == 10**18 + 7


def test_a_target_that_cannot_be_written_is_known_before_any_work(tmp_path, capsys, monkeypatch):
    source = save(tmp_path / "in.png", noise(3))
    monkeypatch.setattr(pipeline, "read_picture", lambda *_: pytest.fail("read"))
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "loop.png").symlink_to("loop.png")
    for name, words in (
        ("pipe.png", "it is a named pipe"),
        ("loop.png", "symbolic links"),
        ("nowhere/out.png", "there is no folder "),
        ("in.png/out.png", "Not a directory"),
    ):
        errors = refused(capsys, "warp", source, tmp_path / name)
        assert errors.startswith(f"cannot write {tmp_path / name}: ")
        assert words in errors


def test_names_are_printed_without_what_a_terminal_obeys(tmp_path, capsys):
    assert printable("a\x1b[31m\n\x9b2J\u202e\udc80é 日") == r"a\x1b[31m\n\x9b2J\u202e\udc80é 日"
    source = save(tmp_path / "a\x1b[31m\nb.png", noise(3))
    (tmp_path / "out").mkdir()
    code, report, errors = run(capsys, "warp", source, tmp_path / "out", *POINT)
    assert (code, errors, report.count("\n")) == (0, "", 1)
    assert report.startswith(r"a\x1b[31m\nb.png 9x6 -> ")
    source.write_bytes(b"")
    code, _, errors = run(capsys, "warp", source, tmp_path / "out")
    assert (code, errors.count("\n"), "\x1b" in errors) == (2, 1, False)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_narrow_encodings_print_escapes(tmp_path, monkeypatch, encoding):
    source, stream = save(tmp_path / "日.png", noise(3)), io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(["warp", str(source), str(tmp_path / "out.png")]) == 0
    assert stream.buffer.getvalue().startswith(rb"\u65e5.png 9x6 -> ")
    assert stream.errors == "strict"


@pytest.mark.parametrize("command", [["info"], ["warp", "in.png", "out.png"]])
def test_a_closed_pipe_is_no_error(tmp_path, capsys, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "in.png", noise(3))
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(command) == 0
    assert capsys.readouterr().err == ""
    assert (tmp_path / "out.png").exists() == (command[0] == "warp")


NO_SPACE = "jaxtex: error: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize("command", [["--help"], ["info"], ["warp", "in.png", "out.png"]])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_standard_output_on_a_full_disk_is_a_sentence(tmp_path, capsys, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "in.png", noise(3))
    for buffering in (1, -1):
        with open("/dev/full", "w", buffering=buffering) as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            assert main(command) == 2
        assert capsys.readouterr().err == NO_SPACE


@pytest.mark.parametrize(("most", "code"), [(10**6, 0), (60, 2)])
def test_a_picture_on_standard_output_is_whole_or_an_error(tmp_path, capsys, monkeypatch, most, code):
    """An unbuffered stream takes a part of what it is given, until the disk is full."""
    written = []

    class Unbuffered(io.RawIOBase):
        def write(self, data):
            if len(b"".join(written)) > most:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written.append(bytes(data[:50]))
            return len(written[-1])

    source, stdout = save(tmp_path / "in.png", noise(3)), types.SimpleNamespace(buffer=Unbuffered(), flush=lambda: None)
    monkeypatch.setattr(sys, "stdout", stdout)
    assert main(["warp", str(source), "-", *POINT]) == code
    errors = capsys.readouterr().err
    assert ("cannot write to standard output: No space left on device" in errors) == bool(code)
    assert code or b"".join(written).endswith(b"IEND\xaeB`\x82")


@pytest.mark.parametrize(("name", "words"), [("stdin", "standard input is closed"), ("stdout", "it is closed")])
def test_standard_streams_may_be_closed(tmp_path, capsys, monkeypatch, name, words):
    source = save(tmp_path / "in.png", noise(3))
    monkeypatch.setattr(sys, name, None)
    assert main(["warp", "-" if name == "stdin" else str(source), "-", *POINT]) == 2
    errors = capsys.readouterr().err
    assert (errors.count("\n"), words in errors) == (1, True)


def test_notes_that_nobody_reads_stop_no_work(tmp_path, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    save(tmp_path / "in.png", noise(4))
    with open(writer, "w", buffering=1) as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        assert main(["warp", str(tmp_path / "in.png"), str(tmp_path / "out.jpg"), *POINT]) == 0
        monkeypatch.undo()
    assert Image.open(tmp_path / "out.jpg").size == (9, 6)


def test_jax_that_may_not_compile_is_a_sentence(tmp_path, capsys):
    with jax.disable_jit():
        assert "JAX_DISABLE_JIT is set, and images are warped by compiled programs; unset it" in refused(
            capsys, "warp", save(tmp_path / "in.png", noise(3)), tmp_path / "out.png"
        )


@pytest.mark.slow
def test_a_platform_that_is_not_there_is_a_sentence():
    process = start("info", JAX_PLATFORMS="cuda")
    report, errors = process.communicate()
    assert (process.returncode, report, errors.count("\n")) == (2, "", 1)
    assert errors.startswith("jaxtex: error: JAX finds no device of JAX_PLATFORMS=cuda; unset it to let JAX choose")


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
