"""Makes the student's exercise.hpp or exercise.cu from the one in solution/.

Between `// BEGIN SOLUTION` and `// END SOLUTION` the code gives way to the lines after
`// SKELETON`, uncommented: enough to compile, to fail, and to say which task is missing.
"""
from .problem import ExerciseError

PLACE = "// Your code here."


def skeleton(text, where):
    """The skeleton of a solution's text. `where` names the file in errors."""
    out, state = [], "keep"
    for number, line in enumerate(text.splitlines(), 1):
        word, indent = line.strip(), line[:len(line) - len(line.lstrip())]
        if word == "// BEGIN SOLUTION":
            if state != "keep":
                raise ExerciseError(f"{where}:{number}: BEGIN SOLUTION inside a solution")
            state = "solution"
            out.append(indent + PLACE)
        elif word == "// SKELETON" and state == "solution":
            state = "skeleton"
        elif word == "// END SOLUTION":
            if state != "skeleton":
                raise ExerciseError(f"{where}:{number}: END SOLUTION needs a BEGIN SOLUTION and "
                                    "a SKELETON before it")
            state = "keep"
        elif state == "keep":
            out.append(line)
        elif state == "skeleton":
            if not word.startswith("// "):
                raise ExerciseError(f"{where}:{number}: a line of a SKELETON starts with '// '")
            out.append(line.replace("// ", "", 1))
    if state != "keep":
        raise ExerciseError(f"{where}: a solution does not end")
    return "\n".join(out) + "\n"


def of(exercise):
    return skeleton(exercise.solution.read_text(), f"{exercise.name}/solution/{exercise.work.name}")


def stale(exercise):
    """Whether the committed skeleton is not what the solution gives."""
    return not exercise.work.exists() or exercise.work.read_text() != of(exercise)
