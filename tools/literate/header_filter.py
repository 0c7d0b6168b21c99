"""Doxygen's input filter for headers; it leaves every line where it is.

- What a header declares is put into the group of its folder: lib/kv_cache/x.hpp into kv_cache,
  kernels/include/... into kernels (docs/groups.dox).
- The first paragraph of a comment is its summary. Doxygen's own rule (JAVADOC_AUTOBRIEF) ends it at
  the first full stop, even inside `tokenizer.*`.
- Friends are left out: Doxygen takes them for members.
"""
import pathlib
import re
import sys

FOLDERS = {"lib": 1, "kernels": 0}      # below lib/ the next folder names the group
FIRST_LINE = re.compile(r"^([ \t]*)/// ?(?![@\\]|<)(?=\S)", re.M)
NAMESPACE = re.compile(r"^(namespace [\w:]+ \{)$", re.M)
END_NAMESPACE = re.compile(r"^(\}  // namespace [\w:]+)$", re.M)
FRIEND = re.compile(r"^[ \t]*friend [^;{]*;", re.M)


def group_of(path):
    """The group of a header, or None: other files declare nothing public."""
    parts = pathlib.PurePath(path).parts
    if not path.endswith(".hpp"):
        return None
    for at in reversed(range(len(parts) - 1)):
        if parts[at] in FOLDERS and parts[at + 1] != parts[-1]:
            return parts[at + FOLDERS[parts[at]]]
    return None


def summarised(text):
    """Marks the first paragraph of each /// comment as its summary."""
    lines, before = text.split("\n"), ""
    for number, line in enumerate(lines):
        if not before.lstrip().startswith("///") or before.strip() == "/// @file":
            lines[number] = FIRST_LINE.sub(r"\1/// @brief ", line)
        before = line
    return "\n".join(lines)


def grouped(text, group):
    """Opens the group inside every namespace: outside, it would hold the namespace alone."""
    text = NAMESPACE.sub(rf"\1 /** @addtogroup {group} */ /** @{{ */", text)
    return END_NAMESPACE.sub(r"/** @} */ \1", text)


def filtered(path, text):
    text = FRIEND.sub(lambda match: "\n" * match[0].count("\n"), text)
    group = group_of(path)
    return summarised(grouped(text, group) if group else text)


if __name__ == "__main__":
    sys.stdout.write(filtered(sys.argv[1], pathlib.Path(sys.argv[1]).read_text()))
