"""./lab run: builds the chapters and runs them."""
import sys
import time
import typing

from . import build, models, ui

HELP = """\
usage: ./lab run [NN ...] [--model NAME] [--device cpu] [--threads N] [CHAPTER OPTIONS]

Builds the chapters and runs them in order; all of them, after a first word from the
model, where none is named. A chapter's name is its number or its topic: 2, 02, kv_cache.

  --model NAME   target (built in), draft (built in), smollm2 (downloaded if it is
                 missing), or the path of a model of the Llama architecture
  --device NAME  cpu
  --threads N    threads to compute with

The first other option, and all that follows it, goes to the chapters:
`./lab run 02 --help` shows what chapter 02 knows.
"""
SHARED = ("--model", "--device", "--threads")
GREETER = ("--model", "--threads")
GREETING = ["--prompt", "What is 2+2?", "--max-tokens", "24"]


class Request(typing.NamedTuple):
    """What `./lab run` was asked for."""
    chapters: list
    options: dict
    rest: list


def names():
    """The chapters there are: ['01_naive_decode', ...]."""
    return sorted(path.parent.name for path in ui.ROOT.glob("chapters/[0-9][0-9]_*/main.*"))


def find(word, there=None):
    """The chapter that 2, 02, kv_cache or 02_kv_cache means."""
    there = names() if there is None else there
    for name in there:
        number, topic = name.split("_", 1)
        if word in (name, topic) or (word.isdecimal() and int(word) == int(number)):
            return name
    listed = f"there are {', '.join(there)}" if there else "this version has none yet"
    raise ui.Problem(f"there is no chapter '{word}'; {listed}.", ui.USAGE)


def parse(arguments):
    """Splits the words of `./lab run` into chapters, shared options and chapter options."""
    chapters, options = [], {}
    words = list(arguments)
    while words:
        word = words[0]
        name, equals, value = word.partition("=")
        if name in SHARED:
            words.pop(0)
            if not equals:
                if not words:
                    raise ui.Problem(f"{name} needs a value; `./lab run --help` explains it.",
                                     ui.USAGE)
                value = words.pop(0)
            options[name] = value
        elif word.startswith("-"):
            break
        else:
            chapters.append(words.pop(0))
    if words and words[0] == "--":
        words.pop(0)
    return Request(chapters, options, words)


def outcome(code):
    if code == 0:
        return ui.green("ok", sys.stdout)
    if code == ui.BLOCKED:
        return "blocked: needs hardware that is not here"
    how = f"exit code {code}" if code > 0 else f"signal {-code}"
    return ui.red(f"failed ({how})", sys.stdout)


def timed(title, command, first=""):
    ui.out("\n" + ui.bold(title, sys.stdout))
    if first:
        ui.out(first)
    start = time.monotonic()
    code = ui.call(command)
    return title, code, time.monotonic() - start


def run(arguments):
    """./lab run"""
    if arguments[:1] in (["--help"], ["-h"]):
        ui.out(HELP.rstrip())
        return 0
    request = parse(arguments)
    there = names()
    chosen = list(dict.fromkeys(find(word, there) for word in request.chapters)) or there
    if request.options.get("--model") in models.DOWNLOADS:
        models.fetch(request.options["--model"])
    greet = not request.chapters and not request.rest
    targets = [f"chapter_{name}" for name in chosen] + (["decodelab"] if greet else [])
    build.make(build.RUN, *targets)

    options = [part for pair in request.options.items() for part in pair]
    results = []
    if greet:
        known = [part for pair in request.options.items() if pair[0] in GREETER
                 for part in pair]
        tool = build.program("decodelab")
        results.append(timed("generate", [tool, "generate", *known, *GREETING], GREETING[1]))
    for name in chosen:
        results.append(timed(name, [build.program(name), *options, *request.rest]))
    ui.out()
    width = max(len(title) for title, _, _ in results)
    for title, code, seconds in results:
        ui.out(f"{title:<{width}}  {seconds:6.1f} s  {outcome(code)}")
    codes = {code for _, code, _ in results}
    if codes - {0, ui.BLOCKED}:
        return ui.FAILED
    return ui.BLOCKED if ui.BLOCKED in codes else 0
