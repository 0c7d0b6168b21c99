"""What `./lab` prints, and how it fails.

Standard output carries only what was asked for (a chapter's output, ctest's, a list).
Progress and errors go to standard error, so that `./lab generate ... > file` is clean.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

USAGE, FAILED, BLOCKED, INTERRUPTED = 2, 1, 77, 130


class Problem(Exception):
    """Something the user can mend: one sentence, and the exit code that goes with it."""

    def __init__(self, sentence, code=FAILED):
        super().__init__(sentence)
        self.code = code


class Parser(argparse.ArgumentParser):
    """argparse, but a wrong option is one sentence."""

    def error(self, message):
        raise Problem(f"{message}; `{self.prog} --help` lists the options.", USAGE)


def is_terminal(stream):
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text, code, stream=None):
    stream = stream or sys.stderr
    plain = "NO_COLOR" in os.environ or not is_terminal(stream)
    return text if plain else f"\033[{code}m{text}\033[0m"


def bold(text, stream=None): return paint(text, 1, stream)
def dim(text, stream=None): return paint(text, 2, stream)
def red(text, stream=None): return paint(text, 31, stream)
def green(text, stream=None): return paint(text, 32, stream)


def say(text):
    """One line of progress."""
    print(text, file=sys.stderr, flush=True)


def out(text=""):
    """One line of what was asked for."""
    print(text, flush=True)


def call(command, env=None, stdout=None):
    """Runs a program in this terminal and returns its exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    command = [str(part) for part in command]
    try:
        process = subprocess.Popen(command, env=env, stdout=stdout)
    except OSError as error:
        raise Problem(f"{command[0]} could not be started: {error.strerror}.") from error
    try:
        return process.wait()
    except KeyboardInterrupt:
        # The terminal sent the same signal to the program: let it tidy up.
        stop(process)
        raise


def stop(process, seconds=5):
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Status:
    """A line that is rewritten on a terminal; elsewhere one line every few seconds."""

    def __init__(self, seconds=5.0):
        self.live = is_terminal(sys.stderr)
        self.seconds = seconds
        self.last = None
        self.shown = False

    def show(self, text, now):
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write("\r" + text[:width] + "\033[K")
            sys.stderr.flush()
            self.shown = True
        elif self.last is None or now - self.last >= self.seconds:
            self.last = now
            say(text)

    def clear(self):
        if self.shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self.shown = False
