"""./lab, ./lab NN, ./lab submit, grade, bundle, new: the exercises and their grading."""
import contextlib
import json
import os
import pathlib
import sys
import zipfile

from exercises import catalogue, compiling, cuda, mutants, running
from exercises.problem import ExerciseError

from . import packages, ui

WORK = ui.ROOT / "build" / "exercises"
PROGRESS = WORK / "progress.json"
BAR = 20
WORD = catalogue.WORD


@contextlib.contextmanager
def one_sentence():
    """What the exercises' tools complain about is a problem of the command line."""
    try:
        yield
    except ExerciseError as error:
        raise ui.Problem(f"{error}." if str(error)[-1] not in ".!?\n" else str(error)) from error


def find(word):
    try:
        return catalogue.find(ui.ROOT, word)
    except ExerciseError as error:
        raise ui.Problem(f"{error}.", ui.USAGE) from error


def number(value):
    return f"{value:g}"


def bar(score, total, width=BAR):
    full = int(width * score / total) if total else 0
    return ui.green("█" * full, sys.stdout) + ui.dim("░" * (width - full), sys.stdout)


# ---------------------------------------------------------------- ./lab and ./lab NN

def progress():
    """{exercise: [score, total]} of the last checks; empty where there is none."""
    try:
        read = json.loads(PROGRESS.read_text())
        return {name: (float(a), float(b)) for name, (a, b) in read.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def remember(exercise, score, total):
    PROGRESS.parent.mkdir(parents=True, exist_ok=True)
    PROGRESS.write_text(json.dumps({**progress(), exercise.name: [score, total]}))


def overview():
    """./lab alone: how far each exercise is."""
    with one_sentence():
        there, known, open_ones = catalogue.all_exercises(ui.ROOT), progress(), []
        titles = [exercise.title.split(": ", 1)[-1] for exercise in there]
        width = max(map(len, titles), default=0)
        numbers = max((len(exercise.number) for exercise in there), default=0)
        for exercise, title in zip(there, titles):
            score, total = known.get(exercise.name, (0, 0))
            if not total or score < total:
                open_ones.append(exercise)
            state = f"{number(score)} of {number(total)} points" if total else "not tried yet"
            ui.out(f"  {exercise.number:<{numbers}}  {title:<{width}}  {bar(score, total, 12)}  {state}")
    first = f" Next: ./lab {open_ones[0].number}." if open_ones else ""
    ui.out(f"\n{len(there) - len(open_ones)} of {len(there)} exercises done.{first} ./lab --help "
           "lists all commands.")
    return 0


def program(exercise, solution, device="simt"):
    """Builds an exercise's tests; a compiler's errors end the command."""
    packages.ensure("exercises")
    source = exercise.solution if solution else exercise.work
    if not source.exists():
        what = "its solution: a student's bundle comes without" if solution else \
            f"{source.relative_to(ui.ROOT)}"
        raise ui.Problem(f"exercise {exercise.number} lacks {what}.")
    toolchain = cuda.toolchain(exercise, ui.ROOT, WORK, device)
    toolchain.prepare(ui.say)
    binary = WORK / "bin" / (exercise.name + ("_solution" if solution else ""))
    binary.parent.mkdir(parents=True, exist_ok=True)
    worked, said = toolchain.build(exercise.sources, source.parent, binary)
    if not worked:
        ui.out(ui.red("It does not compile yet:", sys.stdout) + "\n")
        for line in compiling.excerpt(said, ui.ROOT).splitlines():
            ui.out("  " + line)
        return None
    return binary


def hint_for(exercise, results):
    """The hint for the first failure: that of a known mistake which fails the same tests."""
    first = next(r for r in results if r.outcome == running.FAILED)
    same_task = [r for r in results if r.test.task == first.test.task]
    if not any(r.unwritten for r in same_task):
        failed = [r.test.name for r in same_task if r.outcome == running.FAILED]
        likely = mutants.suspects(mutants.of(exercise), failed, [r.test.name for r in same_task])
        if likely:
            return "\n      or: ".join(mutant.hint for mutant in likely[:3])
    return first.test.hint


def show(result, explain):
    """The line of a test case, and of the first failure what went wrong."""
    sign = {running.PASSED: ui.green("✓", sys.stdout), running.FAILED:
            ui.red("✗", sys.stdout), running.BLOCKED: "–"}[result.outcome]
    points = f"{number(result.score)}/{number(result.test.points)}"
    ui.out(f"  {sign} {result.test.name:<64} {points}")
    if result.outcome == running.BLOCKED:
        ui.out(f"      blocked: {result.message}")
    elif explain:
        note = {"crash": "it crashed\n", "time-out": "", "early end": ""}.get(result.how, "")
        for line in (note + result.message).splitlines():
            ui.out("      " + ui.dim(line, sys.stdout))


def check(word, arguments):
    """./lab NN"""
    parser = ui.Parser(f"./lab {word}", description="Builds an exercise and checks it. Exit "
                       "code 0: full marks, 1: not yet, 77: the rest needs other hardware.")
    parser.add_argument("--hint", action="store_true", help="say where to look")
    parser.add_argument("--solution", action="store_true",
                        help="check the solution instead of your work")
    add_device(parser)
    options = parser.parse_args(arguments)
    exercise = find(word)
    with one_sentence():
        tests = device_tests(exercise, options.device)
        ui.out(ui.bold(exercise.title, sys.stdout) + f"   exercises/{exercise.name}/")
        blocked = all(test.blocked() for test in tests)
        binary = None if blocked else program(exercise, options.solution, options.device)
        if not binary and not blocked:
            return ui.FAILED
        results, failed = [], False
        for result in running.run_all(binary, tests):
            results.append(result)
            show(result, result.outcome == running.FAILED and not failed)
            failed |= result.outcome == running.FAILED
    return conclude(exercise, results, options)


def add_device(parser):
    parser.add_argument("--device", choices=catalogue.DEVICES, default="simt",
                        help="what runs a CUDA exercise: the emulator (default) or a GPU")


def device_tests(exercise, device):
    """The exercise's test cases, as this device runs them."""
    if device == "cuda" and not exercise.is_cuda:
        raise ui.Problem(f"exercise {exercise.number} has no kernels: leave --device cuda out.",
                         ui.USAGE)
    return exercise.tests(device)


def conclude(exercise, results, options):
    """The last lines of a check, and its exit code."""
    score, total = sum(r.score for r in results), sum(r.test.points for r in results)
    outcomes = {r.outcome for r in results}
    if not options.solution and running.BLOCKED not in outcomes:
        remember(exercise, score, total)
    ui.out(f"  {bar(score, total)} {number(score)} of {number(total)} points")
    if running.FAILED in outcomes:
        if options.hint:
            ui.out("  hint: " + (hint_for(exercise, results) or "none for this one; read the "
                                 "task in README.md again"))
        else:
            ui.out(f"  stuck? ./lab {exercise.number} --hint")
        return ui.FAILED
    if running.BLOCKED in outcomes:
        return ui.BLOCKED
    if not options.solution:
        ui.out(f"  done. ./lab submit {exercise.number} packs it to hand in; ./lab says what is next.")
    return 0


# ---------------------------------------------------------------- ./lab submit

def submit(arguments):
    """./lab submit NN"""
    parser = ui.Parser("./lab submit", description="Packs what you edited into one file to hand "
                                                   "in.")
    parser.add_argument("exercise")
    exercise = find(parser.parse_args(arguments).exercise)
    files = sorted(exercise.folder.glob("exercise.*"))
    if not files:
        raise ui.Problem(f"exercises/{exercise.name} has no {exercise.work.name} to hand in.")
    target = ui.ROOT / f"submission-{exercise.name}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, f"{exercise.name}/{file.name}")
    ui.out(f"{target.name} holds {', '.join(file.name for file in files)}.")
    score, total = progress().get(exercise.name, (0, 0))
    if total and score < total:
        ui.say(f"when last checked it had {number(score)} of {number(total)} points.")
    return 0


# ---------------------------------------------------------------- ./lab grade

def grade(arguments):
    """./lab grade NN FOLDER --out FOLDER"""
    from exercises import grading, reports, sandbox
    parser = ui.Parser("./lab grade", description="Grades a folder of submissions: folders, .zip "
                       "or .tar.gz, named after the students.")
    parser.add_argument("exercise")
    parser.add_argument("submissions", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="FOLDER",
                        help="for grades.csv, junit.xml and a folder for each student")
    parser.add_argument("--hidden", type=pathlib.Path, metavar="FILE",
                        help="further tests, which students do not have")
    parser.add_argument("--as-user", metavar="NAME", help="run students' code as this user "
                        "(needs root; default for root: nobody)")
    parser.add_argument("--timeout", type=float, default=10, metavar="S",
                        help="seconds for a test case (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="submissions at a time")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs; default: drawn anew")
    add_device(parser)
    options = parser.parse_args(arguments)
    exercise = find(options.exercise)
    device_tests(exercise, options.device)
    packages.ensure("exercises")
    for path, wanted in ((options.submissions, "folder"), (options.hidden, "file")):
        if path and not (path.is_dir() if wanted == "folder" else path.is_file()):
            raise ui.Problem(f"{path} is not a {wanted}.", ui.USAGE)
    user = chosen_user(options.as_user, sandbox)
    if options.timeout <= 0 or options.jobs < 1:
        raise ui.Problem("--timeout must be above 0 and --jobs at least 1.", ui.USAGE)
    settings = grading.Options(options.hidden, user, options.timeout, options.jobs, options.seed,
                               options.device)
    with one_sentence(), grading.Grader(ui.ROOT, exercise, settings) as grader:
        grader.prepare(ui.say)
        how = sandbox.described(user)
        ui.say(f"running submissions {how}; seed {grader.seed}")

        def done(graded):
            notes = reports.clean("; ".join(graded.notes))
            ui.out(f"  {graded.student:<16} {reports.marks(graded)}  {number(graded.score):>4} of "
                   f"{number(graded.total)}  {notes}".rstrip())
        everything = grader.grade_all(options.submissions, done)
        reports.write(options.out, exercise, everything, grader.seed, how)
    ui.out(f"{len(everything)} submissions; grades.csv, junit.xml and the students' folders are "
           f"in {options.out}.")
    return 0


def chosen_user(name, sandbox):
    if name is None:
        return sandbox.default_user()
    if os.geteuid() != 0:
        raise ui.Problem("--as-user needs root: start it with sudo, or leave it out.", ui.USAGE)
    if not sandbox.exists(name):
        raise ui.Problem(f"there is no user '{name}' here, or it is root.", ui.USAGE)
    if not sandbox.SETPRIV:
        raise ui.Problem("--as-user needs setpriv, of the package util-linux.")
    return name


# ---------------------------------------------------------------- ./lab bundle and ./lab new

def bundle(arguments):
    """./lab bundle"""
    from exercises import bundle as packing
    parser = ui.Parser("./lab bundle", description="Packs the course for students: without "
                       "solutions, mutants and example submissions.")
    parser.add_argument("--out", type=pathlib.Path, default=ui.ROOT / "build" /
                        "decodelab-students.tar.gz", metavar="FILE.tar.gz")
    out = parser.parse_args(arguments).out
    with one_sentence():
        count = packing.write(ui.ROOT, out)
    ui.out(f"{out}: {count} files.")
    return 0


def new(arguments):
    """./lab new NN TOPIC"""
    from exercises import template
    parser = ui.Parser("./lab new", description="Adds a chapter that builds, checks itself and "
                       "renders, with an exercise of one task.")
    parser.add_argument("number", help="for example 12")
    parser.add_argument("topic", help="in small letters, for example sliding_window")
    options = parser.parse_args(arguments)
    with one_sentence():
        for path in template.create(ui.ROOT, options.number, options.topic):
            ui.out(f"wrote {path}")
    ui.out(f"next: ./lab run {options.number}, then edit chapters/{options.number}_"
           f"{options.topic}/main.cpp")
    return 0
