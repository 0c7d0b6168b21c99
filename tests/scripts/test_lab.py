"""./lab: commands, chapter names, packages and the build's output; nothing is built here."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from lab import build, chapters, commands, packages, ui  # noqa: E402

CHAPTERS = ["01_naive_decode", "02_kv_cache", "10_tensor_parallel"]


def lab(*arguments):
    """Runs ./lab as a user does."""
    return subprocess.run([sys.executable, ROOT / "lab", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)


class CommandLine(unittest.TestCase):
    def test_mistakes_are_one_sentence_and_exit_2(self):
        for arguments, words in [
                (["tset"], "no command 'tset'; did you mean test?"),
                (["marks"], "no command 'marks'"),
                (["run", "99"], "no chapter '99'"),
                (["run", "--model"], "--model needs a value"),
                (["model", "gpt9"], "no model 'gpt9'"),
                (["build", "--preset", "gpu9"], "no preset 'gpu9'"),
                (["install", "gui"], "no group 'gui'"),
                (["test", "--sanitise-me"], "unrecognized arguments")]:
            with self.subTest(arguments=arguments):
                done = lab(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stdout, "")
                self.assertIn(words, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_help_names_every_command(self):
        done = lab("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name in commands.COMMANDS:
            self.assertIn(f"  {name} ", done.stdout)

    def test_help_of_a_command(self):
        for name in ("run", "test", "build", "model", "install"):
            done = lab(name, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(f"usage: ./lab {name}", done.stdout)

    def test_no_colour_in_a_file(self):
        self.assertNotIn("\033", lab("tset").stderr)

    def test_interrupt_is_quiet(self):
        command = commands.Command("", "", mock.Mock(side_effect=KeyboardInterrupt))
        with mock.patch.dict(commands.COMMANDS, {"run": command}):
            self.assertEqual(commands.main(["run"]), 130)


class Chapters(unittest.TestCase):
    def test_names(self):
        for word, name in [("1", 0), ("01", 0), ("naive_decode", 0), ("kv_cache", 1),
                           ("02_kv_cache", 1), ("2", 1), ("10", 2)]:
            self.assertEqual(chapters.find(word, CHAPTERS), CHAPTERS[name])

    def test_unknown_names_list_the_chapters(self):
        for word in ("0", "3", "kv", "", "-1", "02_", "²"):
            with self.assertRaises(ui.Problem) as caught:
                chapters.find(word, CHAPTERS)
            self.assertEqual(caught.exception.code, 2)
            self.assertIn("01_naive_decode, 02_kv_cache", str(caught.exception))

    def test_options(self):
        for words, expected in [
                ("", ([], {}, [])),
                ("1 kv_cache", (["1", "kv_cache"], {}, [])),
                ("--model draft 2", (["2"], {"--model": "draft"}, [])),
                ("2 --threads=3 --tokens 16", (["2"], {"--threads": "3"}, ["--tokens", "16"])),
                ("2 --tokens 16 --model x", (["2"], {}, ["--tokens", "16", "--model", "x"])),
                ("2 -- 5", (["2"], {}, ["5"]))]:
            self.assertEqual(tuple(chapters.parse(words.split())), expected)

    def run_with(self, codes, arguments):
        calls = []

        def call(command):
            calls.append([str(part) for part in command])
            return codes[len(calls) - 1]
        with mock.patch.object(chapters, "names", return_value=CHAPTERS), \
                mock.patch.object(build, "make") as make, \
                mock.patch.object(ui, "call", call), \
                contextlib.redirect_stdout(io.StringIO()) as said:
            return chapters.run(arguments), calls, make.call_args[0], said.getvalue()

    def test_run_all(self):
        code, calls, targets, said = self.run_with([0, 0, 0, 0], ["--threads", "2", "--device", "cpu"])
        self.assertEqual(code, 0)
        self.assertEqual(targets, ("cpu", *[f"chapter_{name}" for name in CHAPTERS],
                                   "decodelab"))
        self.assertEqual(calls[0][1:5], ["generate", "--threads", "2", "--prompt"])
        self.assertTrue(calls[2][0].endswith("build/cpu/chapters/02_kv_cache/02_kv_cache"))
        self.assertEqual(calls[2][1:], ["--threads", "2", "--device", "cpu"])
        self.assertEqual(said.count(" s  ok"), 4)

    def test_run_some(self):
        code, calls, targets, _ = self.run_with([0], ["2", "kv_cache", "--tokens", "4"])
        self.assertEqual((code, targets), (0, ("cpu", "chapter_02_kv_cache")))
        self.assertEqual([call[1:] for call in calls], [["--tokens", "4"]])

    def test_a_failure_does_not_stop_the_rest(self):
        for codes, expected in [([0, 1, 0, 0], 1), ([0, 0, -11, 0], 1), ([0, 77, 0, 0], 77),
                                ([0, 77, 1, 0], 1), ([3, 0, 0, 0], 1)]:
            code, calls, _, said = self.run_with(codes, [])
            self.assertEqual((code, len(calls)), (expected, 4))
            self.assertEqual(said.count(" s  ok"), codes.count(0))


class Packages(unittest.TestCase):
    def test_format(self):
        self.assertEqual(packages.parse("# c\n[a]\nx  # why\n\ny\n[b]\n z \n"),
                         {"a": ["x", "y"], "b": ["z"]})

    def test_mistakes_name_the_line(self):
        for text, line in (("x\n[a]\n", 1), ("[a]\n\nx y\n", 3)):
            with self.assertRaisesRegex(ui.Problem, f"packages.txt:{line} "):
                packages.parse(text)

    def test_the_list_of_this_repository(self):
        groups = packages.parse(packages.LIST.read_text())
        self.assertLessEqual({"build", "sanitize", "model", "ci"}, set(groups))
        self.assertTrue(all(groups.values()))

    def test_what_dpkg_says(self):
        answers = ["cmake:amd64 installed\ng++:amd64 config-files\nclang:arm64 installed\n"
                   "doc:all installed\nlib:amd64 installed\n", "amd64\n"]
        with mock.patch.object(packages, "answer", side_effect=answers):
            self.assertEqual(
                packages.missing(["g++", "cmake", "catch2", "doc", "clang", "clang:arm64",
                                  "lib:arm64"]),
                ["g++", "catch2", "clang", "lib:arm64"])

    def ensure(self, prefix, missing, environment=(), call=0):
        with tempfile.TemporaryDirectory() as scratch, \
                mock.patch.object(packages, "STAMPS", pathlib.Path(scratch)), \
                mock.patch.object(packages, "as_root", return_value=prefix), \
                mock.patch.object(packages, "missing", side_effect=missing) as asked, \
                mock.patch.object(packages, "fingerprint", return_value="f"), \
                mock.patch.object(packages.shutil, "which", return_value="/usr/bin/x"), \
                mock.patch.dict(os.environ, dict(environment)), \
                mock.patch.object(ui, "say"), \
                mock.patch.object(ui, "call", return_value=call) as called:
            os.environ.pop(packages.SKIP, None) if not environment else None
            packages.ensure("build")
            packages.ensure("build")
            return asked.call_count, [" ".join(args[0][0]) for args in called.call_args_list]

    def test_without_root_the_command_to_type(self):
        with self.assertRaises(ui.Problem) as caught:
            self.ensure(None, [["cmake", "ninja-build"]])
        self.assertEqual(caught.exception.code, 1)
        self.assertIn("sudo apt-get update && sudo apt-get install -y --no-install-recommends "
                      "cmake ninja-build\n", str(caught.exception))

    def test_root_installs_and_asks_only_once(self):
        asked, called = self.ensure([], [["cmake"], []])
        self.assertEqual(asked, 2)
        self.assertEqual(len(called), 2)
        self.assertTrue(called[0].endswith(" update"))
        self.assertTrue(called[1].endswith(" install -y --no-install-recommends cmake"))
        self.assertFalse(called[1].startswith("sudo"))
        self.assertTrue(self.ensure(["sudo", "-n"], [["g++"], []])[1][1].startswith("sudo -n"))

    def test_packages_of_another_architecture(self):
        with tempfile.NamedTemporaryFile("w+") as system, \
                mock.patch.object(packages, "OS_RELEASE", pathlib.Path(system.name)):
            _, called = self.ensure(["sudo", "-n"], [["g++", "x:arm64", "y:arm64"], []])
            self.assertEqual(called[0], "sudo -n dpkg --add-architecture arm64")
            self.assertTrue(called[1].endswith(" update"))
            self.assertTrue(called[2].endswith(" g++ x:arm64 y:arm64"))
            with self.assertRaisesRegex(ui.Problem, " sudo dpkg --add-architecture arm64 && "):
                self.ensure(None, [["x:arm64"]])
            system.write("NAME=Ubuntu\nID=ubuntu\n")
            system.flush()
            with self.assertRaisesRegex(ui.Problem, "Ubuntu's archive has no packages for arm64"):
                self.ensure([], [["x:arm64"]])

    def test_nothing_missing_is_asked_once(self):
        self.assertEqual(self.ensure([], [[]]), (1, []))

    def test_a_failed_install_is_a_problem(self):
        with self.assertRaisesRegex(ui.Problem, "could not install cmake"):
            self.ensure([], [["cmake"], []], call=100)
        with self.assertRaisesRegex(ui.Problem, "could not install cmake"):
            self.ensure([], [["cmake"], ["cmake"]])

    def test_the_check_can_be_skipped(self):
        self.assertEqual(self.ensure(None, [["cmake"]], {packages.SKIP: "1"}), (0, []))


class Build(unittest.TestCase):
    def follow(self, lines, seconds):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            build.follow(lines, "building", clock=iter(seconds).__next__)
        return said.getvalue().splitlines()

    def test_progress_in_a_log(self):
        steps = [f"[{n}/4] Building {n}\n" for n in (1, 2, 3, 4)]
        self.assertEqual(self.follow(steps, [0, 1, 5, 6]),
                         ["building:  25 % (1/4) Building 1", "building:  75 % (3/4) Building 3"])

    def test_nothing_to_do_is_silent(self):
        self.assertEqual(self.follow(["ninja: no work to do.\n", "-- Configuring done\n"], []), [])

    def test_compiler_messages_come_through(self):
        lines = ["[1/2] Building a\n", "FAILED: a.o \n", "/usr/bin/c++ -long -line\n",
                 "a.cpp:1:1: error: no\n", "ninja: build stopped: subcommand failed.\n"]
        self.assertEqual(self.follow(lines, [0])[1:],
                         ["FAILED: a.o ", "a.cpp:1:1: error: no",
                          "ninja: build stopped: subcommand failed."])

    def test_jobs_fit_cores_and_memory(self):
        for cores, memory, expected in ((8, None, 8), (8, 4 * build.GIB, 2), (2, 64 * build.GIB, 2),
                                        (4, 1000, 1)):
            with mock.patch.object(build, "cores", return_value=cores), \
                    mock.patch.object(build, "free_memory", return_value=memory):
                self.assertEqual(build.jobs(), expected)

    def test_presets_that_can_be_built(self):
        self.assertLessEqual({build.RUN, build.TEST, build.SANITIZE}, set(build.presets()))
        self.assertNotIn("base", build.presets())

    def test_cmake_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(build.cached(pathlib.Path(folder)), {})
            pathlib.Path(folder, "CMakeCache.txt").write_text(
                "# c\nCMAKE_HOME_DIRECTORY:INTERNAL=/a b\nX:STRING=\n")
            self.assertEqual(build.cached(pathlib.Path(folder)),
                             {"CMAKE_HOME_DIRECTORY": "/a b", "X": ""})


if __name__ == "__main__":
    unittest.main()
