"""What is read from source files: their code without comments, and their named regions."""
import hashlib
import re

from literate.errors import ChapterError

# In this order: what looks like a comment inside a string is none, and 1'000 opens no character.
TOKEN = re.compile(
    r'''(?P<keep>R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'''
    r"""|\b\d(?:'?[\w.])*|'(?:\\.|[^'\\\n])+')"""
    r"""|(?P<drop>//(?:\\\n|[^\n])*|/\*.*?\*/|\s+)""",
    re.S)
REGION = re.compile(r"\s*//\s*\[region (\w[\w.-]*)\]\s*")
END_REGION = re.compile(r"\s*//\s*\[endregion(?: \w[\w.-]*)?\]\s*")


def code_only(text):
    """The code without comments and without the blanks between its tokens."""
    return TOKEN.sub(lambda match: match["keep"] or "", text)


def code_hash(text):
    """Changes when the code changes, and not when only its prose, comments or layout do."""
    return hashlib.sha256(code_only(text).encode()).hexdigest()[:16]


def region(path, name):
    """The lines of the region `name` of a file, and the number of the first; @throws ChapterError."""
    if not path.is_file():
        raise ChapterError(f"there is no file {path.name} at {path.parent}")
    found, open_regions, names = None, [], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if start := REGION.fullmatch(line):
            open_regions.append(start[1])
            names.append(start[1])
            if start[1] == name:
                if found is not None:
                    raise ChapterError(f"{path.name}:{number} opens a second region '{name}'")
                found = (number + 1, [])
        elif END_REGION.fullmatch(line):
            if not open_regions:
                raise ChapterError(f"{path.name}:{number} ends a region that no line began")
            open_regions.pop()
        elif name in open_regions:
            found[1].append(line)
    if found is None:
        raise ChapterError(f"{path.name} has no region '{name}'; it has: "
                           f"{', '.join(names) or 'none; mark one with // [region NAME]'}")
    if open_regions:
        raise ChapterError(f"the region '{open_regions[-1]}' of {path.name} has no // [endregion]")
    return "\n".join(found[1]), found[0]
