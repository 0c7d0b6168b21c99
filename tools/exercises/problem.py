"""How this package fails: one sentence, for the command line to print."""


class ExerciseError(Exception):
    """Something a student or an instructor can mend."""
