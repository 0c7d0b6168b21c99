"""The table of commands, and the commands that are a few lines."""
import difflib
import os
import signal
import sys
import typing

from . import build, capture, chapters, docs, exercises, models, packages, ui


class Command(typing.NamedTuple):
    usage: str
    about: str
    run: typing.Callable


def test(arguments):
    """./lab test"""
    parser = ui.Parser("./lab test", description="Builds everything and runs the tests.")
    parser.add_argument("--sanitize", action="store_true",
                        help="with address and undefined-behaviour sanitizers, and fuzzing")
    parser.add_argument("--preset", help="another preset of CMakePresets.json")
    parser.add_argument("-R", metavar="REGEX", help="only tests whose name matches")
    chosen = parser.parse_args(arguments)
    preset = chosen.preset or (build.SANITIZE if chosen.sanitize else build.TEST)
    build.make(preset)
    command = ["ctest", "--test-dir", build.directory(preset), "--output-on-failure",
               "--no-tests=error", "--parallel", build.cores()]
    if chosen.R:
        command += ["-R", chosen.R]
    return ui.FAILED if ui.call(command) else 0


def build_all(arguments):
    """./lab build"""
    parser = ui.Parser("./lab build", description="Builds the library, tools, chapters and "
                                                  "tests into build/PRESET.")
    parser.add_argument("--preset", default=build.RUN,
                        help=", ".join(build.presets()) + " (default: %(default)s)")
    preset = parser.parse_args(arguments).preset
    build.make(preset)
    ui.out(f"build/{preset} is up to date.")
    return 0


def install(arguments):
    """./lab install"""
    parser = ui.Parser("./lab install", description="Installs the packages of the groups in "
                                                    "packages.txt; the other commands do it "
                                                    "when they need one.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="default: build")
    packages.ensure(*(parser.parse_args(arguments).groups or ["build"]))
    return 0


def tool(name):
    """./lab NAME ARGS... is decodelab NAME ARGS..., once it is built."""
    def run(arguments):
        build.make(build.RUN, "decodelab")
        path = str(build.program("decodelab"))
        sys.stdout.flush()
        sys.stderr.flush()
        # Python ignores it, and the program would inherit that: `./lab generate ... | head`.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        try:
            os.execv(path, [path, name, *arguments])
        except OSError as error:
            raise ui.Problem(f"{path} could not be started: {error.strerror}.") from error
    return run


COMMANDS = {
    "run": Command("[NN ...] [OPTIONS]", "build and run the chapters", chapters.run),
    "test": Command("[--sanitize] [-R REGEX]", "build and run the tests", test),
    "docs": Command("[--check]", "build this course's pages", docs.docs),
    "generate": Command("ARGS...", "continue a text", tool("generate")),
    "tokenize": Command("ARGS...", "texts in, token ids out, as JSON", tool("tokenize")),
    "logits": Command("ARGS...", "token ids in, next-token logits out, as JSON", tool("logits")),
    "inspect": Command("ARGS...", "show what a model file holds", tool("inspect")),
    "bench": Command("ARGS...", "measure prefill and decode", tool("bench")),
    "perplexity": Command("ARGS...", "how well a model predicts a text", tool("perplexity")),
    "submit": Command("NN", "pack your exercise to hand it in", exercises.submit),
    "grade": Command("NN FOLDER --out FOLDER", "grade a folder of submissions",
                     exercises.grade),
    "bundle": Command("[--out FILE]", "pack the course without solutions", exercises.bundle),
    "new": Command("NN TOPIC", "add a chapter and its exercise", exercises.new),
    "model": Command("[NAME]", "download a model, or list them", models.model),
    "build": Command("[--preset P]", "build everything", build_all),
    "capture": Command("[NN ...]", "renew the numbers on the chapters' pages", capture.capture),
    "install": Command("[GROUP ...]", "install what packages.txt lists", install),
}


def usage():
    width = max(len(name) + len(command.usage) for name, command in COMMANDS.items()) + 1
    lines = ["usage: ./lab COMMAND ...", "",
             f"  {'NN [--hint] [--solution]':<{width}}  build and check exercise NN",
             f"  {'(nothing)':<{width}}  how far your exercises are"]
    lines += [f"  {name + ' ' + command.usage:<{width}}  {command.about}"
              for name, command in COMMANDS.items()]
    return "\n".join([*lines, "", "./lab COMMAND --help says more about one of them."])


def find(name):
    if name in COMMANDS:
        return COMMANDS[name]
    near = difflib.get_close_matches(name, COMMANDS, 1)
    hint = f"did you mean {near[0]}? There are" if near else "there are"
    raise ui.Problem(f"there is no command '{name}'; {hint} {', '.join(COMMANDS)}.", ui.USAGE)


def main(arguments):
    """Runs one command and returns the exit code: a user's mistake is one sentence."""
    try:
        if not arguments:
            return exercises.overview()
        if exercises.WORD.fullmatch(arguments[0]):
            return exercises.check(arguments[0], arguments[1:])
        if arguments[0] in ("--help", "-h", "help"):
            ui.out(usage())
            return 0
        return find(arguments[0]).run(arguments[1:])
    except ui.Problem as problem:
        ui.say(f"{ui.red('lab:')} {problem}")
        return problem.code
    except KeyboardInterrupt:
        return ui.INTERRUPTED
    except BrokenPipeError:
        # The reader left (`./lab --help | head`): say nothing, also when Python closes up.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ui.FAILED
    except OSError as error:
        ui.say(f"{ui.red('lab:')} {error.filename or 'a file'}: {error.strerror or error}.")
        return ui.FAILED
