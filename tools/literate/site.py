"""Builds the site: the chapters' pages and notebooks, docs/*.md, the exercises and the API."""
import html
import pathlib
import re
import shutil
import subprocess
import sys

from literate import ladder, ladder_cpu, notebook, page
from literate.errors import ChapterError

AWESOME = pathlib.Path("/usr/share/doxygen-awesome-css")     # Debian: doxygen-awesome-css
MATHJAX = pathlib.Path("/usr/share/javascript/mathjax")      # Debian: libjs-mathjax
STYLES = ("doxygen-awesome.css", "doxygen-awesome-sidebar-only.css",
          "doxygen-awesome-sidebar-only-darkmode-toggle.css")
SCRIPTS = ("doxygen-awesome-darkmode-toggle.js", "doxygen-awesome-paragraph-link.js",
           "doxygen-awesome-interactive-toc.js")
# TeX in, SVG out: needs no web fonts, so that pages work from the disk, with no server.
MATHJAX_PARTS = ("MathJax.js", "extensions/tex2jax.js", "extensions/TeX", "extensions/MathEvents.js",
                 "extensions/MathMenu.js", "extensions/MathZoom.js", "extensions/fast-preview.js",
                 "extensions/AssistiveMML.js", "extensions/toMathML.js", "jax/element",
                 "jax/input/TeX", "jax/output/SVG/config.js", "jax/output/SVG/jax.js",
                 "jax/output/SVG/autoload", "jax/output/SVG/fonts/TeX")
THEME = pathlib.Path(__file__).resolve().parents[2] / "docs"    # our style sheets and scripts
MATHJAX_TAGS = re.compile(r'<script type="text/x-mathjax-config">.*?</script>\s*'
                          r'<script [^>]*MathJax\.js[^>]*></script>\s*', re.S)
FRAGMENT = re.compile(r'<div class="fragment">.*?</div><!-- fragment -->', re.S)
FORMULA = re.compile(r'class="formula|\\[(\[]')
SOURCE_LINK = re.compile(r'<a href="source:([^"#]+)(#l\d+)">(.*?)</a>')
INCLUDE = re.compile(r"(#include &lt;(?:<a [^>]*>)?)(\w+/[\w/]+\.hpp)")
SOURCE_DIRS = ("lib", "kernels/include")
# Types and free functions must say what they are; a member like size() and a constant may speak for
# themselves.
SPEAKS_FOR_ITSELF = re.compile(r"Member .* of (?:class|struct) \S+ is not documented"
                               r"|Member .*\(variable\) of namespace \S+ is not documented")
TABS = """<navindex>
    <tab type="mainpage" visible="yes" title="Start"/>
    <tab type="pages" visible="yes" title="Chapters" intro=""/>
    <tab type="usergroup" visible="yes" title="Reference">
      <tab type="modules" visible="yes" title="By folder" intro=""/>
      <tab type="topics" visible="yes" title="By folder" intro=""/>
      <tab type="classlist" visible="yes" title="Classes" intro=""/>
      <tab type="filelist" visible="yes" title="Files" intro=""/>
    </tab>
  </navindex>"""


class Site:
    """One build into `out`: pages/ for Doxygen, then html/."""

    def __init__(self, course, out):
        self.course, self.root = course, course.root
        self.out = pathlib.Path(out).resolve()
        self.pages, self.html = self.out / "pages", self.out / "html"
        self.docs = self.root / "docs"
        self.doxygen = shutil.which("doxygen")
        if not self.doxygen:
            raise ChapterError("there is no doxygen here; on Debian and Ubuntu: "
                               "sudo apt-get install doxygen doxygen-awesome-css libjs-mathjax")

    def notice(self, text):
        print(f"notice: {text}", file=sys.stderr)

    # ---------------------------------------------------------------- pages

    def write_pages(self):
        """Fills pages/; returns the files in the order of the sidebar."""
        course, files = self.course, []

        def write(name, text):
            files.append(self.pages / f"{len(files):02d}_{name}.md")
            files[-1].write_text(text)

        exercises = sorted(p for p in self.root.glob("exercises/[0-9][0-9]_*/README.md"))
        documents = [p for p in sorted(self.docs.glob("*.md")) if p.name != "index.md"]
        known = {p.name: p.stem for p in documents} | {"index.md": "mainpage"}
        known |= {f"{p.parent.name}/README.md": f"ex{p.parent.name}" for p in exercises}
        index = page.document((self.docs / "index.md").read_text(), "mainpage", known)
        for mark, content in (("map", page.raw(course.map())), ("table", course.table()),
                              ("start", course.start_link())):
            index = index.replace(f"<!-- chapters: {mark} -->", content)
        write("index", index)
        for part, chapters in course.parts():
            write(part["id"], course.part_page(part, chapters))
            for chapter in chapters:
                write(chapter.name, page.Page(chapter, course.titles,
                                              *course.neighbours(chapter)).markdown())
        if exercises:
            write("exercises", "# Exercises {#exercises}\n\n" + "\n".join(
                f"- @subpage ex{p.parent.name}" for p in exercises))
            for path in exercises:
                write("ex" + path.parent.name, page.document(
                    path.read_text(), "ex" + path.parent.name, known, is_exercise=True))
        ladders = ladder.Ladders(self.root)
        for path in documents:
            text = page.document(path.read_text(), path.stem, known)
            text = text.replace(ladder.MARK, ladders.listing())
            if ladder_cpu.MARK in text:
                text = text.replace(ladder_cpu.MARK, ladder_cpu.CpuLadders(self.root).markdown())
            write(path.stem, text)
        for name, text in ladders.pages():
            write(name, text)
        return files

    # ---------------------------------------------------------------- Doxygen

    def write_templates(self, awesome):
        """This Doxygen's own header and layout, with our scripts and tabs: fits any version."""
        run = [self.doxygen, "-w", "html", "header.html", "footer.html", "style.css", "Doxyfile"]
        subprocess.run(run, cwd=self.out, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       check=True)
        scripts = [*(SCRIPTS if awesome else ()), "figure.js", "course.js"]
        tags = "".join(f'<script type="text/javascript" src="$relpath^{name}"></script>\n'
                       for name in scripts)
        header = self.out / "header.html"
        header.write_text(header.read_text().replace("</head>", tags + "</head>"))
        subprocess.run([self.doxygen, "-l", "layout.xml"], cwd=self.out, check=True,
                       stdout=subprocess.DEVNULL)
        layout = (self.out / "layout.xml").read_text()
        tabs = TABS
        for kind in ("modules", "topics"):      # the same tab, before and after Doxygen 1.9.8
            if f'type="{kind}"' not in layout:
                tabs = re.sub(rf'\n *<tab type="{kind}".*', "", tabs)
        layout = re.sub(r"<navindex>.*</navindex>", tabs, layout, flags=re.S)
        (self.out / "layout.xml").write_text(layout)

    def write_doxyfile(self, files, awesome, mathjax):
        def paths(items):
            return " \\\n                         ".join(f'"{item}"' for item in items)
        styles = [AWESOME / name for name in STYLES] if awesome else []
        scripts = [AWESOME / name for name in SCRIPTS] if awesome else []
        sources = [self.root / name for name in SOURCE_DIRS if (self.root / name).is_dir()]
        values = {
            "TITLE": self.course.plan["title"], "BRIEF": self.course.plan["brief"],
            "OUT": self.out, "ROOT": self.root, "THEME": THEME,
            "INPUT": paths([*files, self.docs / "groups.dox", *sources]),
            "FIRST": files[0],
            "STYLES": paths([*styles, THEME / "figure.css", THEME / "course.css"]),
            "EXTRA": paths([*scripts, THEME / "figure.js", THEME / "course.js"]),
            "FILTER": f'"{sys.executable} -S -E {pathlib.Path(__file__).parent / "header_filter.py"}"',
            "MATHJAX": "mathjax" if mathjax else "",
        }
        text = (THEME / "Doxyfile.in").read_text()
        (self.out / "Doxyfile").write_text(re.sub(r"@(\w+)@", lambda m: str(values[m[1]]), text))

    def run_doxygen(self):
        """The warnings of the run, each once."""
        done = subprocess.run([self.doxygen, "Doxyfile"], cwd=self.out, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
        said = dict.fromkeys(line for line in done.stderr.splitlines() if line.strip())
        if done.returncode and not said:
            return [f"doxygen failed with exit code {done.returncode}"]
        # FAIL_ON_WARNINGS makes Doxygen call its warnings errors; it has made all the pages.
        return [line.replace(f"{self.root}/", "") for line in said
                if not SPEAKS_FOR_ITSELF.search(line)]

    # ---------------------------------------------------------------- afterwards

    def copy_parts(self, mathjax):
        if mathjax:
            for part in MATHJAX_PARTS:
                source, target = MATHJAX / part, self.html / "mathjax" / part
                target.parent.mkdir(parents=True, exist_ok=True)
                copy = shutil.copytree if source.is_dir() else shutil.copy
                copy(source, target)
        for chapter in self.course.chapters:
            text = notebook.dump(chapter, self.course.plan["repository"])
            (self.html / f"{chapter.name}.ipynb").write_text(text)
            for script in chapter.dir.glob("figures/*.js"):
                target = self.html / "figures" / chapter.name
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy(script, target)

    def finish_pages(self):
        """What Doxygen cannot be told: three changes to its pages."""
        sources = {}
        for path in self.html.glob("*_source.html"):
            title = re.search(r"<title>[^<]*?: (\S+) Source File</title>", path.read_text())
            sources[title[1]] = path.name

        def link(match):        # "source:FILE#line", from @show
            address = sources.get(html.unescape(match[1]))
            return f'<a href="{address}{match[2]}">{match[3]}</a>' if address else match[3]

        def include(match):     # lib/x/y.hpp is included as lab/x/y.hpp
            inside_lib = (self.root / "lib" / match[2]).exists()
            return match[1] + ("lab/" if inside_lib else "") + match[2]
        for path in self.html.rglob("*.html"):
            before = path.read_text()
            text = SOURCE_LINK.sub(link, INCLUDE.sub(include, before))
            if path.name.endswith("_source.html") or not FORMULA.search(FRAGMENT.sub("", text)):
                text = MATHJAX_TAGS.sub("", text)   # most pages of the API need none
            if text != before:
                path.write_text(text)

    def build(self):
        for folder in (self.pages, self.html):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        awesome = all((AWESOME / name).exists() for name in (*STYLES, *SCRIPTS))
        mathjax = all((MATHJAX / name).exists() for name in MATHJAX_PARTS)
        if not awesome:
            self.notice("no doxygen-awesome-css here: the pages keep Doxygen's own look")
        if not mathjax:
            self.notice("no libjs-mathjax here: the pages fetch MathJax from the network")
        self.write_doxyfile(self.write_pages(), awesome, mathjax)
        self.write_templates(awesome)
        warnings = self.run_doxygen()
        if not (self.html / "index.html").exists():
            raise ChapterError("doxygen made no pages:\n" + "\n".join(warnings))
        self.copy_parts(mathjax)
        self.finish_pages()
        return warnings


def build(course, out):
    """Builds OUT/html; prints Doxygen's warnings and returns 1 if there were any, else 0."""
    site = Site(course, out)
    warnings = site.build()
    if warnings:
        print("\n".join(warnings), file=sys.stderr)
        print(f"doxygen: {len(warnings)} warnings; the pages are there, but not as they should be",
              file=sys.stderr)
    print(site.html / "index.html")
    return 1 if warnings else 0
