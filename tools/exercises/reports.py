"""What a grading writes: a table, JUnit, and for each student Gradescope's results and a page."""
import csv
import json
import xml.sax.saxutils

from .running import BLOCKED, FAILED, PASSED

MARK = {PASSED: "✓", FAILED: "✗", BLOCKED: "–"}
HOW = {"crash": "!", "time-out": "∞", "early end": "?", "checks missing": "?",
       "nothing to run": "✗"}
COMPILER_CHARACTERS = 4000


def number(value):
    return f"{value:g}"


def marks(graded):
    """One sign for each test case."""
    return "".join(HOW.get(r.how, MARK[r.outcome]) if r.outcome == FAILED else MARK[r.outcome]
                   for r in graded.results)


def clean(text):
    """Without the control characters that XML and terminals do not take."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)


def feedback(result):
    """What a student may read about a test case: of one that they do not have, its outcome."""
    if result.test.extra or result.passed:
        return ""
    message = clean(result.message)
    return f"{message}\nhint: {result.test.hint}" if result.test.hint else message


def gradescope(graded, exercise, seed):
    """Gradescope's results.json (its autograder specification, "Output format")."""
    tests = []
    for at, result in enumerate(graded.results, 1):
        entry = {"name": result.test.name, "number": str(at), "score": result.score,
                 "max_score": result.test.points, "output": feedback(result),
                 "visibility": "after_published" if result.test.extra else "visible",
                 "extra_data": {"outcome": result.outcome, "how": result.how}}
        if result.outcome == BLOCKED:
            entry["output"] = f"blocked, which is not a pass: {result.message}"
        else:
            entry["status"] = result.outcome
        tests.append(entry)
    said = [f"{exercise.name}: {number(graded.score)} of {number(graded.total)} points"]
    if graded.unreadable:
        said.append(f"Your submission could not be graded: {clean(graded.unreadable)}.")
    if graded.compiler:
        said += ["It does not compile:", clean(graded.compiler)[:COMPILER_CHARACTERS]]
    return {"output": "\n".join(said), "tests": tests, "extra_data": {"seed": seed}}


def page(graded, exercise, seed):
    """The student's page, Markdown."""
    lines = [f"# {exercise.title}: {clean(graded.student)}", "",
             f"**{number(graded.score)} of {number(graded.total)} points**", ""]
    if graded.unreadable:
        lines += [f"Your submission could not be graded: {clean(graded.unreadable)}.", ""]
    if graded.compiler:
        lines += ["It does not compile. The first errors:", "", "```",
                  clean(graded.compiler)[:COMPILER_CHARACTERS], "```", ""]
    lines += ["| | Test | Points |", "|---|---|---|"]
    for result in graded.results:
        lines.append(f"| {MARK[result.outcome]} {result.outcome} | {result.test.name} | "
                     f"{number(result.score)} of {number(result.test.points)} |")
    for result in graded.results:
        told = feedback(result)
        if told and not graded.unreadable and not graded.compiler:
            lines += ["", f"## {result.test.name}", "", "```", told.replace("```", "'''"), "```"]
    lines += ["", f"The inputs came from seed {seed}."]
    return "\n".join(lines) + "\n"


def junit(all_graded, exercise):
    quote = xml.sax.saxutils.quoteattr
    out = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for graded in all_graded:
        failed = sum(r.outcome == FAILED for r in graded.results)
        blocked = sum(r.outcome == BLOCKED for r in graded.results)
        out.append(f"<testsuite name={quote(clean(graded.student))} "
                   f'tests="{len(graded.results)}" failures="{failed}" skipped="{blocked}">')
        for r in graded.results:
            inner = {PASSED: "", BLOCKED: f"<skipped message={quote(clean(r.message))}/>",
                     FAILED: f"<failure type={quote(r.how)} message={quote(clean(r.message))}/>"}
            out.append(f"<testcase classname={quote(exercise.name)} name={quote(r.test.name)} "
                       f'time="{r.seconds:.3f}">{inner[r.outcome]}</testcase>')
        out.append("</testsuite>")
    return "\n".join([*out, "</testsuites>"]) + "\n"


def cell(text):
    """A table's cell that a spreadsheet does not take for a formula."""
    text = clean(text).replace("\n", " ")
    return "'" + text if text[:1] in ("=", "+", "-", "@") else text


def write(folder, exercise, all_graded, seed, how):
    """Writes all the reports of a grading. `how`: what the code ran as, in words."""
    folder.mkdir(parents=True, exist_ok=True)
    for graded in all_graded:
        own = folder / graded.student
        own.mkdir(exist_ok=True)
        results = gradescope(graded, exercise, seed)
        (own / "results.json").write_text(json.dumps(results, indent=1) + "\n")
        (own / "report.md").write_text(page(graded, exercise, seed))
    with open(folder / "grades.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["student", "score", "of", "passed", "failed", "blocked", "note"])
        for g in all_graded:
            counts = [sum(r.outcome == o for r in g.results) for o in (PASSED, FAILED, BLOCKED)]
            table.writerow([cell(g.student), number(g.score), number(g.total), *counts,
                            cell("; ".join(g.notes))])
    (folder / "junit.xml").write_text(junit(all_graded, exercise))
    (folder / "grading.json").write_text(json.dumps(
        {"exercise": exercise.name, "seed": seed, "students": len(all_graded), "ran": how},
        indent=1) + "\n")
