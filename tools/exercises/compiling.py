"""Compiles an exercise. The compiler is called directly: an exercise is one header and its tests.

Catch2's main and its header are compiled once into a folder that all exercises share; after
that a student's edit costs one short compilation.
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

from .problem import ExerciseError
from .sandbox import Limits, run as run_limited

FLAGS = ["-std=c++20", "-O0", "-Wall", "-Wextra", "-Wno-unused-parameter",
         "-D_GLIBCXX_ASSERTIONS", "-fdiagnostics-color=never"]
SUPPORT = ("testing.hpp", "main.cpp")
COMPILE_SECONDS = 300


def compiler():
    """The C++ compiler: $CXX, else the first that is here."""
    for name in filter(None, [os.environ.get("CXX"), "g++", "clang++", "c++"]):
        found = shutil.which(name)
        if found:
            return found
    raise ExerciseError("there is no C++ compiler here; install g++ 12 or newer, or clang 14 or "
                        "newer, or set CXX")


def call(command, cwd):
    return subprocess.run([str(part) for part in command], cwd=cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)


class Toolchain:
    """A compiler, and the folder of what it compiles once: main.o and a precompiled header."""

    def __init__(self, root, folder):
        self.support = pathlib.Path(root) / "exercises" / "support"
        self.cxx = compiler()
        version = call([self.cxx, "--version"], None).stdout
        self.is_clang = "clang" in version
        digest = hashlib.sha256(" ".join([self.cxx, version, *FLAGS]).encode())
        for name in SUPPORT:
            digest.update((self.support / name).read_bytes())
        self.folder = pathlib.Path(folder).resolve() / digest.hexdigest()[:16]
        self.libraries = []

    @property
    def header(self):
        return self.folder / ("testing.hpp.pch" if self.is_clang else "testing.hpp.gch")

    def prepare(self, say=lambda text: None):
        """Compiles what all exercises share, where that is not done yet."""
        if (self.folder / "ready").exists():
            self.libraries = (self.folder / "ready").read_text().split()
            return
        say("compiling Catch2's main (once) ...")
        self.folder.mkdir(parents=True, exist_ok=True)
        mark = f".{os.getpid()}"
        for name in SUPPORT:
            shutil.copyfile(self.support / name, self.folder / name)
        steps = [[self.cxx, *FLAGS, "-x", "c++-header", "testing.hpp", "-o",
                  self.header.name + mark],
                 [self.cxx, *FLAGS, "-c", "main.cpp", "-o", "main.o" + mark]]
        for command in steps:
            done = call(command, self.folder)
            if done.returncode != 0:
                if "catch2" in done.stdout and "No such file" in done.stdout or \
                        "file not found" in done.stdout:
                    raise ExerciseError("the compiler finds no Catch2; on Debian and Ubuntu: "
                                        "sudo apt-get install catch2")
                raise ExerciseError("Catch2's main does not compile:\n" + done.stdout[:4000])
            made = self.folder / command[-1]
            os.replace(made, str(made)[:-len(mark)])
        self.libraries = self.find_libraries()
        (self.folder / "ready").write_text(" ".join(self.libraries))

    def find_libraries(self):
        """What to link beside main.o: nothing for Catch2 2, its library for Catch2 3."""
        for libraries in ([], ["-lCatch2"]):
            probe = call([self.cxx, "main.o", "-o", "probe", *libraries], self.folder)
            if probe.returncode == 0:
                return libraries
        raise ExerciseError("Catch2's main does not link:\n" + probe.stdout[:4000])

    def command(self, sources, include, binary):
        early = ["-include-pch", self.header] if self.is_clang else ["-include", "testing.hpp"]
        return [self.cxx, *FLAGS, "-I", self.folder, *early, "-I", include, *sources,
                self.folder / "main.o", *self.libraries, "-o", binary]

    def build(self, sources, include, binary, user=None):
        """Compiles `sources` against the exercise.hpp in `include`, within limits.

        @return (whether it worked, what the compiler said)
        """
        pathlib.Path(binary).unlink(missing_ok=True)
        limits = Limits(seconds=COMPILE_SECONDS, memory=4 << 30, file_size=1 << 30,
                        output=1 << 20, processes=256)
        command = self.command([pathlib.Path(s) for s in sources], include, binary)
        done = run_limited(command, pathlib.Path(binary).parent, limits, user=user)
        if done.timed_out:
            return False, f"the compiler was stopped after {COMPILE_SECONDS} s"
        worked = done.code == 0 and pathlib.Path(binary).exists()
        return worked, done.output


def excerpt(messages, folder, lines=12):
    """The first errors of a compiler, without the paths that a reader does not need."""
    text = messages.replace(f"{folder}{os.sep}", "")
    said = [line for line in text.splitlines() if not line.startswith("In file included from")
            and not re.match(r" {6,}from ", line)]
    first = next((i for i, line in enumerate(said) if re.search(r"\berror\b", line)), 0)
    return "\n".join(said[first:first + lines])
