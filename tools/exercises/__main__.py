"""`python3 tools/exercises [--check] [NN ...]`: writes the skeletons, or says which are stale."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from exercises import catalogue, skeleton  # noqa: E402
from exercises.problem import ExerciseError  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main(words):
    only_check = "--check" in words
    named = [word for word in words if word != "--check"]
    chosen = [catalogue.find(ROOT, word) for word in named] or catalogue.all_exercises(ROOT)
    stale = [exercise for exercise in chosen if skeleton.stale(exercise)]
    for exercise in stale:
        path = exercise.work.relative_to(ROOT)
        if only_check:
            print(f"{path} is not what the solution gives", file=sys.stderr)
        else:
            exercise.work.write_text(skeleton.of(exercise))
            print(f"wrote {path}")
    return 1 if stale and only_check else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ExerciseError as problem:
        sys.exit(f"exercises: {problem}.")
