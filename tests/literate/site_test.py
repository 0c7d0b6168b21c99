"""site_test.py ROOT OUT: builds the site of ROOT into OUT and reads it.

No warning, no broken link or anchor, no path of this machine, no leftover of the sources. Exits
with 77 where there is no doxygen."""
import html.parser
import pathlib
import re
import resource
import shutil
import sys
import urllib.parse

from support import SKIPPED

from literate.course import Course
from literate.site import Site

MOST_CPU_SECONDS = 30       # not a measurement: a build that takes more is broken
MADE_BY_SCRIPTS = ("javascript:", "mailto:", "http:", "https:", "data:")


FRAGMENT = re.compile(r'<div class="fragment">.*?</div><!-- fragment -->', re.S)


class Reader(html.parser.HTMLParser):
    """The anchors of a page, what it links to, and its text outside code and scripts."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.anchors, self.links, self.text, self.silent = set(), [], [], 0

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(attrs[name] for name in ("id", "name") if attrs.get(name))
        self.links += [attrs[name] for name in ("href", "src") if attrs.get(name)]
        if tag in ("script", "style", "pre", "code", "title"):
            self.silent += 1

    def handle_endtag(self, tag):
        if tag in ("script", "style", "pre", "code", "title"):
            self.silent -= 1

    def handle_data(self, data):
        if not self.silent:
            self.text.append(data)


def links_only(fragment):
    """The anchors and links of a piece of code, without its text."""
    return "".join(re.findall(r"<a [^>]*>", fragment[0]))


def read(folder):
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        pages[path] = Reader()
        content = path.read_text()
        keep_anchors = path.name.endswith("_source.html")
        pages[path].feed(content if keep_anchors else FRAGMENT.sub(links_only, content))
    return pages


def broken_links(folder, pages):
    for path, page in pages.items():
        for link in page.links:
            if link.startswith(MADE_BY_SCRIPTS):
                continue
            address, _, anchor = link.partition("#")
            target = (path.parent / urllib.parse.unquote(address)).resolve() if address else path
            if not target.exists():
                yield f"{path.relative_to(folder)}: a link to {link}, which is not there"
            elif anchor and target in pages and urllib.parse.unquote(anchor) not in pages[target].anchors:
                yield f"{path.relative_to(folder)}: a link to {link}, which has no such anchor"


def leftovers(folder, pages, root):
    for path, page in pages.items():
        raw, text = FRAGMENT.sub("", path.read_text()), "".join(page.text)
        name = path.relative_to(folder)
        for machine in (root, folder.parent):
            if f"{machine}/" in raw:
                yield f"{name}: it names the folder {machine}"
        if path.name.endswith("_source.html"):
            continue
        for mark in ("<!-- chapters:", "@htmlonly", "@subpage", "@ref ", "{{"):
            if mark in (raw if mark.startswith("<") else text):
                yield f"{name}: '{mark}' is left over"
        if 'href="source:' in raw:
            yield f"{name}: a link to a source that was not resolved"
        without_math = re.sub(r"\\\[.*?\\\]|\\\(.*?\\\)", "", text, flags=re.S)
        if "$$" in without_math or re.search(r"\\f[$\[\]]", without_math):
            yield f"{name}: a formula is left as it was written"


def chain(folder, course):
    """Following `next` from the first page leads through every chapter, and back."""
    here, visited = "index.html", []
    while len(visited) <= len(course.chapters):
        match = re.search(r'<a rel="next" href="([^"]+)"', (folder / here).read_text())
        if not match:
            yield f"{here} has no next page"
            return
        here = match[1]
        if here == "index.html":
            break
        visited.append(here)
    missed = {f"ch{c.name}.html" for c in course.chapters} - set(visited)
    if missed or here != "index.html":
        yield f"following `next` leads to {visited}; it misses {sorted(missed)}"


def main():
    root, out = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    if not shutil.which("doxygen"):
        print("skipped: there is no doxygen here")
        return SKIPPED
    course = Course(root)
    site = Site(course, out)
    problems = site.build()
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    if seconds > MOST_CPU_SECONDS:
        problems.append(f"the build took {seconds:.0f} s of a processor")
    pages = read(site.html)
    problems += [*broken_links(site.html, pages), *leftovers(site.html, pages, root),
                 *chain(site.html, course)]
    for chapter in course.chapters:
        if not (site.html / f"ch{chapter.name}.html").exists():
            problems.append(f"no page for {chapter.name}")
    print("\n".join(problems))
    print(f"{len(pages)} pages, {len(problems)} problems, {seconds:.1f} s of a processor")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
