"""Figures that move: chapters/NN/figures/NAME.js, drawn by docs/figure.js from recorded numbers."""
import html
import json
import pathlib

MAX_LINES = 100
THEME = pathlib.Path(__file__).resolve().parents[2] / "docs"


def parse(text):
    """(name, caption) of what follows @figure."""
    name, _, caption = text.partition(" ")
    return name, " ".join(caption.split())


def load(chapter, cell):
    """(name, caption, description, script); the description is the comment the file begins with.

    @throws ChapterError if the figure is missing, too long or does not describe itself."""
    name, caption = parse(cell.text)
    path = chapter.dir / "figures" / f"{name}.js"
    if not caption:
        raise chapter.error(cell.line, f"@figure {name} needs a caption")
    if not path.is_file():
        raise chapter.error(cell.line, f"@figure {name}: there is no {path.relative_to(chapter.root)}")
    script = path.read_text()
    lines = script.splitlines()
    if len(lines) > MAX_LINES:
        raise chapter.error(cell.line, f"{path.relative_to(chapter.root)} has {len(lines)} lines; "
                                       f"a figure has at most {MAX_LINES}")
    described = []
    for line in lines:
        if not line.startswith("//"):
            break
        described.append(line.lstrip("/").strip())
    if not described:
        raise chapter.error(cell.line, f"{path.relative_to(chapter.root)} must begin with a // comment "
                                       f"that says in words what the figure shows")
    if f'figure("{name}"' not in script:
        raise chapter.error(cell.line, f'{path.relative_to(chapter.root)} must call '
                                       f'lab.figure("{name}", ...)')
    return name, caption, " ".join(described), script


def recorded(run):
    """The recorded numbers, as JSON that may stand inside a script element."""
    data = {"metrics": {key: entry["value"] for key, entry in run["metrics"].items()},
            "series": run["series"]} if run else {"metrics": {}, "series": {}}
    return json.dumps(data).replace("</", "<\\/")


def markup(chapter, cell, script_tag):
    """The HTML of a @figure: a place for the drawing, its caption, and words for when it cannot."""
    name, caption, description, _ = load(chapter, cell)
    return (f'<figure class="moving" data-figure="{name}" data-description="{html.escape(description)}">'
            f'<div class="scroll stage"></div><noscript><p>{html.escape(description)}</p></noscript>'
            f"<figcaption>{html.escape(caption)}</figcaption></figure>"
            f'<script type="application/json" data-recorded="{name}">{recorded(chapter.run)}</script>'
            f"{script_tag}")


def standalone(chapter, name, run):
    """The figure `name` as one piece of HTML that needs nothing else, for notebooks."""
    cell = next(c for c in chapter.cells if c.kind == "figure" and parse(c.text)[0] == name)
    _, _, _, script = load(chapter, cell)
    loader = (THEME / "figure.js").read_text()
    style = (THEME / "figure.css").read_text()
    chapter.run = run or chapter.run
    return (f"<style>{style}</style><script>{loader}</script>"
            + markup(chapter, cell, f"<script>{script}</script>"))
