"""The page of a chapter, as Markdown for Doxygen.

Markdown files rather than comments: in a /** */ comment a `*/` or a `$` of the code would end or
change it. Everything that Markdown cannot say stands between @htmlonly and @endhtmlonly.
"""
import html
import re
import textwrap

from literate import figure, plot


# Code spans and fenced blocks come first, so that a $ in them stays one.
SPANS = re.compile(r"(?P<code>^```.*?^```[^\n]*|`[^`]+`)|(?P<literal>\\\$)"
                   r"|\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$\n]+(?:\n[^$\n]+)?)\$", re.S | re.M)
HEADING = re.compile(r"^(##+) (.+?)\s*$", re.M)
CLOSING = re.compile(r"\s*(return( 0)?;\s*)?\}[)};\s]*")     # the end of main, not worth showing
MAIN = re.compile(r"[\s})]*;?\s*int main\(int argc, char\s?\*\*\s?argv\) \{\s*return [^{}]*;\s*\}\s*")


def doxygen_math(text):
    """$...$ and $$...$$ as Doxygen writes them."""
    def formula(match):
        if match["code"]:
            return match["code"]
        if match["literal"]:
            return "$"
        if match["block"]:
            return "\n\\f[" + match["block"].strip() + "\\f]\n"
        return "\\f$" + match["inline"] + "\\f$"
    return SPANS.sub(formula, text)


def raw(markup):
    return f"\n@htmlonly[block]\n{markup}\n@endhtmlonly\n"


def slug(text):
    return re.sub(r"\W+", "_", text.lower()).strip("_")


def page_id(name):
    return "ch" + name


def anchored(text, page):
    """Gives every heading an anchor of its own: Doxygen's are numbered over the whole site."""
    return HEADING.sub(lambda m: f"{m[1]} {m[2]} {{#{page}_{slug(m[2])}}}", text)


def repeated_headings(chapter):
    """The problems of a chapter with two headings of one name: one anchor would hide the other."""
    seen, problems = {}, []
    for cell in chapter.cells:
        if cell.kind != "prose":
            continue
        for match in HEADING.finditer(cell.text):
            line = cell.line + cell.text[:match.start()].count("\n")
            first = seen.setdefault(slug(match[2]), line)
            if first != line:
                problems.append(f"{chapter.where(line)}: a second section '{match[2]}'; "
                                f"the first is in line {first}")
    return problems


def listing(code):
    return f"\n@code{{.cpp}}\n{textwrap.dedent(code)}\n@endcode\n"


class Page:
    """Writes one chapter. `titles`: of all chapters, by name; `before` and `after`: (link, title)."""

    def __init__(self, chapter, titles, before, after):
        self.chapter, self.titles, self.before, self.after = chapter, titles, before, after
        self.out = []
        self.folded = None      # the title of the @fold that waits for its code

    def markdown(self):
        chapter = self.chapter
        self.out.append(f"# {chapter.number} · {chapter.title} {{#{page_id(chapter.name)}}}\n")
        self.out.append(raw(self.facts()))
        if stale := chapter.stale():
            self.out.append(raw('<div class="stale">These numbers are older than the code: '
                                f'{html.escape(", ".join(stale))} changed after they were '
                                'captured.</div>'))
        self.out.append("\n[TOC]\n")
        objectives = self.objectives()
        for cell in chapter.cells:
            if objectives and cell.kind != "prose":
                self.out.append(objectives)
                objectives = None
            getattr(self, cell.kind)(cell)
        self.out.append(raw(self.navigation()))
        return "\n".join(self.out)

    # ---------------------------------------------------------------- around the cells

    def facts(self):
        chapter, facts = self.chapter, []
        if minutes := chapter.front.get("time"):
            facts.append(f"about {minutes} minutes")
        if names := chapter.front["builds-on"]:
            facts.append("builds on " + ", ".join(
                f'<a href="{page_id(n)}.html">{html.escape(self.titles.get(n, n))}</a>' for n in names))
        if run := chapter.run:
            threads = f", {run['threads']} thread{'s' * (run['threads'] > 1)}" if run.get("threads") else ""
            facts.append(f"measured on {html.escape(run['device'])}{threads}, {run['date']}")
        links = [f'<a class="button" href="{chapter.name}.ipynb" download>Notebook</a>']
        if exercise := chapter.front.get("exercise"):
            links.append(f'<a class="button" href="ex{exercise}.html">Exercise</a>')
        return (f'<div class="facts"><span>{" · ".join(facts)}</span>'
                f'<span class="buttons">{"".join(links)}</span></div>'
                + self.command(f"./lab run {chapter.name[:2]}"))

    def objectives(self):
        items = "\n".join(f"- {doxygen_math(self.chapter.fill(cell))}"
                          for cell in self.chapter.front["learn"])
        if not items:
            return None
        return (raw('<div class="learn"><b>You will learn to</b>') + "\n" + items + "\n" + raw("</div>"))

    def navigation(self):
        (back, before), (on, after) = self.before, self.after
        return (f'<nav class="chapters"><a rel="prev" href="{back}">← {html.escape(before)}</a>'
                f'<a rel="next" href="{on}">{html.escape(after)} →</a></nav>')

    @staticmethod
    def command(text):
        return (f'<div class="command"><code>{html.escape(text)}</code>'
                f'<button type="button" class="copy">copy</button></div>')

    # ---------------------------------------------------------------- one method a kind of cell

    def prose(self, cell):
        text = doxygen_math(self.chapter.fill(cell))
        self.out.append(anchored(text, page_id(self.chapter.name)) + "\n")

    def fold(self, cell):
        self.folded = cell.text

    def code(self, cell):
        title, self.folded = self.folded, None
        if CLOSING.fullmatch(cell.text):
            return
        if MAIN.fullmatch(cell.text):
            title = title or "The main function"
        if title:
            self.out.append(raw(f'<details class="fold"><summary>{html.escape(title)}</summary>'))
        self.out.append(listing(cell.text))
        if title:
            self.out.append(raw("</details>"))

    def output(self, cell):
        shown = self.chapter.section(cell)
        shown = "(not captured yet)" if shown is None else shown
        command = self.command(f"./lab run {self.chapter.name[:2]} --section {cell.text}")
        self.out.append(raw(f'<div class="output">{command}<pre tabindex="0">{html.escape(shown)}</pre>'
                            "</div>"))

    def plot(self, cell):
        self.out.append(raw(plot.draw(self.chapter, cell) or "<p>(not captured yet)</p>"))

    def figure(self, cell):
        name, _ = figure.parse(cell.text)
        script = f'<script src="figures/{self.chapter.name}/{name}.js"></script>'
        self.out.append(raw(figure.markup(self.chapter, cell, script)))

    def show(self, cell):
        path, code, first = self.chapter.shown(cell)
        name = path.relative_to(self.chapter.root)
        # site.py puts the address of the file's source page in place of "source:".
        self.out.append(raw(f'<div class="shown"><a href="source:{name}#l{first:05d}">'
                            f"{html.escape(str(name))}</a></div>"))
        self.out.append(listing(code))

    def predict(self, cell):
        self.out.append(raw('<div class="predict"><b>Predict</b>') + "\n"
                        + doxygen_math(self.chapter.fill(cell)) + "\n" + raw("</div>"))

    def answer(self, cell):
        self.out.append(raw('<details class="answer"><summary>Answer</summary>') + "\n"
                        + doxygen_math(self.chapter.fill(cell)) + "\n" + raw("</details>"))

    def expect(self, cell):
        """A claim is for `check`, not for the page."""


def document(text, page, known, is_exercise=False):
    """A hand-written Markdown file of the repository, made ready for Doxygen.

    `page` becomes its identity; links to other documents (`known`: file name -> page) become
    references, and links to other files of the repository their names."""
    text = re.sub(r"^# (.+?)(?: \{#\w+\})?$", lambda m: f"# {m[1]} {{#{page}}}\n\n[TOC]\n", text,
                  count=1, flags=re.M)
    if page == "mainpage" or is_exercise:
        text = text.replace("\n[TOC]\n", "", 1)
    if page == "mainpage":      # as sections they would all stand in the sidebar
        text = HEADING.sub(lambda m: f'<h{len(m[1]) - 1} id="{slug(m[2])}">{m[2]}</h{len(m[1]) - 1}>', text)
    else:
        text = anchored(text, page)

    def link(match):
        label, target = match[1], match[2]
        if re.match(r"[a-z]+:|#|@ref", target):
            return match[0]
        name, _, anchor = target.partition("#")
        wanted = next((known[k] for k in known if name.endswith(k)), None)
        if wanted:
            return f"[{label}](@ref {wanted}{'_' + slug(anchor) if anchor else ''})"
        return label if label.startswith("`") else f"{label} (`{name.removeprefix('../')}`)"
    return doxygen_math(re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", link, text))


