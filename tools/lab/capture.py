"""./lab capture: runs chapters and keeps what they print, for their pages."""
from literate.capture import NEEDS_HARDWARE
from literate.capture import capture as capture_one
from literate.chapter import Chapter
from literate.errors import ChapterError

from . import build, chapters, ui


def capture(arguments):
    """./lab capture [NN ...]"""
    parser = ui.Parser("./lab capture", description="Runs the chapters, one at a time, and keeps "
                                                    "what they print and measure in their "
                                                    "captured.json. Nothing else should run.")
    parser.add_argument("chapters", nargs="*", metavar="NN", help="default: all")
    parser.add_argument("--threads", type=int, default=0, help="threads to compute with")
    chosen = parser.parse_args(arguments)
    there = chapters.names()
    names = [chapters.find(word, there) for word in chosen.chapters] or there
    build.make(build.RUN, *(f"chapter_{name}" for name in names))
    blocked = False
    try:
        for name in names:
            chapter = Chapter(ui.ROOT / "chapters" / name)
            if capture_one(chapter, build.program(name), chosen.threads) == NEEDS_HARDWARE:
                ui.say(f"{name} needs hardware that is not here; its captured.json is as it was")
                blocked = True
    except ChapterError as problem:
        raise ui.Problem(str(problem)) from problem
    return ui.BLOCKED if blocked else 0
