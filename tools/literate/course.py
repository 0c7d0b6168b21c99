"""All the chapters together: their parts, their order, the map and the table of the main page."""
import html
import json
import pathlib

from literate import page
from literate.chapter import Chapter
from literate.errors import ChapterError

NODE_WIDTH, NODE_HEIGHT, GAP_X, GAP_Y, MARGIN = 216, 58, 28, 46, 8
START = ("index.html", "Start")


class Course:
    """The chapters of a repository, and docs/course.json: title and parts."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.plan = json.loads((self.root / "docs" / "course.json").read_text())
        folders = sorted(p for p in (self.root / "chapters").glob("[0-9][0-9]_*") if p.is_dir())
        self.chapters = [Chapter(folder, self.root) for folder in folders
                         if list(folder.glob("main.c*"))]
        self.by_name = {chapter.name: chapter for chapter in self.chapters}
        self.titles = {c.name: f"{c.number} · {c.title}" for c in self.chapters}

    def find(self, words):
        """The chapters called 2, 02, kv_cache or 02_kv_cache; all where there are no words."""
        found = []
        for word in words:
            matches = [c for c in self.chapters if word in (c.name, c.name[:2], c.name[3:])
                       or (word.isdecimal() and int(word) == c.number)]
            if not matches:
                raise ChapterError(f"there is no chapter '{word}'; there are "
                                   f"{', '.join(self.by_name) or 'none'}")
            found += matches
        return found or self.chapters

    def parts(self):
        """(part, its chapters) for each part of course.json that has chapters."""
        taken, out = set(), []
        for part in self.plan["parts"]:
            first, last = part["chapters"]
            inside = [c for c in self.chapters if first <= c.number <= last]
            taken.update(c.name for c in inside)
            if inside:
                out.append((part, inside))
        for chapter in self.chapters:
            if chapter.name not in taken:
                raise ChapterError(f"{chapter.where(1)}: no part of docs/course.json holds chapter "
                                   f"{chapter.number}")
        return out

    # ---------------------------------------------------------------- the order of reading

    def chain(self):
        """The chapters in reading order: @next where given, else by number."""
        if not self.chapters:
            return []
        order, here = [], self.chapters[0]
        while here and here not in order:
            order.append(here)
            wanted = here.front.get("next")
            later = [c for c in self.chapters if c.number > here.number]
            here = self.by_name.get(wanted) if wanted else (later[0] if later else None)
        return order

    def neighbours(self, chapter):
        """((link, title) before, (link, title) after)."""
        order = self.chain()
        if chapter not in order:
            return START, START
        at = order.index(chapter)

        def link(c):
            return f"{page.page_id(c.name)}.html", self.titles[c.name]
        before = link(order[at - 1]) if at else START
        after = link(order[at + 1]) if at + 1 < len(order) else START
        return before, after

    # ---------------------------------------------------------------- pieces of pages

    def table(self):
        rows = ["| | Chapter | You add | Minutes |", "|---|---|---|---|"]
        for chapter in self.chapters:
            rows.append(f"| {chapter.number} | [{chapter.title}](@ref {page.page_id(chapter.name)}) | "
                        f"{page.doxygen_math(chapter.front.get('summary', ''))} | "
                        f"{chapter.front.get('time', '')} |")
        return "\n".join(rows)

    def start_link(self):
        order = self.chain()
        if not order:
            return ""
        name = order[0].name
        return page.raw('<nav class="chapters"><span></span><a rel="next" '
                        f'href="{page.page_id(name)}.html">{html.escape(self.titles[name])} →</a></nav>')

    def part_page(self, part, chapters):
        lines = [f"# {part['title']} {{#{part['id']}}}", "", part["summary"], ""]
        for chapter in chapters:
            lines += [f"- @subpage {page.page_id(chapter.name)}",
                      f"  <br>{chapter.front.get('summary', '')}"]
            lines += [f"  - {page.doxygen_math(chapter.fill(cell))}" for cell in chapter.front["learn"]]
        first = chapters[0]
        lines.append(page.raw('<nav class="chapters"><a rel="prev" href="index.html">← Start</a>'
                              f'<a rel="next" href="{page.page_id(first.name)}.html">'
                              f'{html.escape(self.titles[first.name])} →</a></nav>'))
        return "\n".join(lines)

    def map(self):
        """The chapters as a graph of what builds on what, each a link to its page."""
        if not self.chapters:
            return "<p>There are no chapters yet.</p>"
        layer = {}
        for chapter in self.chapters:   # in order of number, so that what it builds on is placed
            below = [layer[n] for n in chapter.front["builds-on"] if n in layer]
            layer[chapter.name] = 1 + max(below) if below else 0
        rows = [[c for c in self.chapters if layer[c.name] == depth]
                for depth in range(max(layer.values()) + 1)]
        widest = max(len(row) for row in rows)
        width = 2 * MARGIN + widest * NODE_WIDTH + (widest - 1) * GAP_X
        height = 2 * MARGIN + len(rows) * NODE_HEIGHT + (len(rows) - 1) * GAP_Y
        at = {}
        for depth, row in enumerate(rows):
            left = (width - len(row) * NODE_WIDTH - (len(row) - 1) * GAP_X) / 2
            for column, chapter in enumerate(row):
                at[chapter.name] = (left + column * (NODE_WIDTH + GAP_X),
                                    MARGIN + depth * (NODE_HEIGHT + GAP_Y))
        out = [f'<figure class="map"><div class="scroll" tabindex="0"><svg class="map" width="{width}" '
               f'height="{height}" viewBox="0 0 {width} {height}" role="group" '
               f'aria-label="The chapters, and what each builds on">']
        out += [self._edge(at[name], at[chapter.name]) for chapter in self.chapters
                for name in chapter.front["builds-on"] if name in at]
        out += [self._node(chapter, *at[chapter.name]) for chapter in self.chapters]
        return "".join(out) + "</svg></div></figure>"

    @staticmethod
    def _edge(start, end):
        x0, y0 = start[0] + NODE_WIDTH / 2, start[1] + NODE_HEIGHT
        x1, y1 = end[0] + NODE_WIDTH / 2, end[1]
        bend = min(GAP_Y, y1 - y0) * 0.6
        return (f'<path class="edge" d="M{x0:.0f} {y0:.0f}C{x0:.0f} {y0 + bend:.0f} {x1:.0f} '
                f'{y1 - bend:.0f} {x1:.0f} {y1 - 7:.0f}"/><path class="arrow" '
                f'd="M{x1 - 5:.0f} {y1 - 9:.0f}h10l-5 8z"/>')

    def _node(self, chapter, x, y):
        builds = ", ".join(self.titles.get(n, n) for n in chapter.front["builds-on"])
        about = chapter.front.get("summary", "") + (f" Builds on {builds}." if builds else "")
        minutes = f"{chapter.front['time']} minutes" if "time" in chapter.front else ""
        return (f'<a href="{page.page_id(chapter.name)}.html"><title>{html.escape(about)}</title>'
                f'<rect x="{x:.0f}" y="{y:.0f}" width="{NODE_WIDTH}" height="{NODE_HEIGHT}" rx="9"/>'
                f'<text class="number" x="{x + 18:.0f}" y="{y + 37:.0f}">{chapter.number}</text>'
                f'<text class="title" x="{x + 48:.0f}" y="{y + 26:.0f}">{html.escape(chapter.title)}</text>'
                f'<text class="minutes" x="{x + 48:.0f}" y="{y + 44:.0f}">{minutes}</text></a>')
