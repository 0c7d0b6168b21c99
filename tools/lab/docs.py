"""./lab docs: checks the chapters' numbers and builds the site."""
import shutil
import sys

from literate import check, site
from literate.course import Course
from literate.errors import ChapterError

from . import packages, ui


def packages_if_possible():
    """The theme and the formulas' renderer are welcome; only doxygen itself is needed."""
    try:
        packages.ensure("docs")
    except ui.Problem:
        if not shutil.which("doxygen"):
            raise
        ui.say("going on without all of the packages of [docs]")


def docs(arguments):
    """./lab docs"""
    parser = ui.Parser("./lab docs", description="Checks that every captured number is current and "
                                                 "every claim about it true, and builds the site "
                                                 "in build/docs/html.")
    parser.add_argument("--check", action="store_true", help="only check")
    only_check = parser.parse_args(arguments).check
    try:
        course = Course(ui.ROOT)
        problems = check.check_all(course)
        for problem in problems:
            ui.say(problem)
        if only_check:
            if not problems:
                ui.out("every captured number is current and every claim holds")
            return ui.FAILED if problems else 0
        packages_if_possible()
        sys.stdout.flush()
        failed = site.build(course, ui.ROOT / "build" / "docs")
    except ChapterError as problem:
        raise ui.Problem(str(problem)) from problem
    return ui.FAILED if problems or failed else 0
