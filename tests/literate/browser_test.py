"""browser_test.py ROOT OUT: opens every page of the site in a browser, from the disk.

No error in a console, no formula left undrawn, no page wider than a phone; every figure moves.
Builds OUT where it is not there. Exits with 77 where there is no Chromium or no doxygen."""
import pathlib
import shutil
import sys

import browser
from support import SKIPPED

from literate.course import Course
from literate.site import Site

UNDRAWN = """(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let text = "";
  while (walker.nextNode()) {
    if (!walker.currentNode.parentElement.closest("script, style, pre, code, .fragment"))
      text += walker.currentNode.data;
  }
  return ["Math Processing Error", "Undefined control sequence", "$$", "\\\\f$", "\\\\f["]
    .filter((mark) => text.includes(mark))
    .concat(document.querySelectorAll(".merror, [data-mjx-error], .MathJax_Error").length ? ["an error in a formula"] : []);
})()"""
FORMULAS = """document.querySelectorAll("p.formulaDsp, span.formulaInl, .MathJax_SVG").length === 0
  || document.querySelectorAll(".MathJax_SVG svg, .MathJax svg, .MathJax").length > 0"""
IMAGES = "[...document.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src)"
# Moves every control of every figure to its end and back: the drawing must change, and say so.
FIGURES = """[...document.querySelectorAll("figure.moving")].map((figure) => {
  const svg = figure.querySelector("svg"), input = figure.querySelector("input[type=range]");
  const name = figure.dataset.figure;
  if (!svg || !svg.childElementCount) return name + " draws nothing";
  if (!input) return name + " has no control";
  if (!svg.getAttribute("aria-label")) return name + " has no words";
  const move = (value) => {
    input.value = value;
    input.dispatchEvent(new Event("input"));
    return svg.innerHTML;
  };
  if (move(input.min) === move(input.max)) return name + " does not move";
  const box = svg.viewBox.baseVal;
  const outside = [...svg.children].some((shape) => {
    const b = shape.getBBox();
    return b.x < -1 || b.y < -1 || b.x + b.width > box.width + 1 || b.y + b.height > box.height + 1;
  });
  return outside ? name + " draws outside its picture" : "";
}).filter(Boolean)"""
OVERLAPPING = """[...document.querySelectorAll("svg.plot, svg.map")].flatMap((svg) => {
  const box = svg.viewBox.baseVal;
  return [...svg.querySelectorAll("text")].filter((text) => {
    const b = text.getBBox();
    return !text.hasAttribute("transform") && (b.x < -1 || b.x + b.width > box.width + 1);
  }).map((text) => "'" + text.textContent + "' leaves its picture");
})"""
TOO_WIDE = "document.documentElement.scrollWidth > window.innerWidth + 1"
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}


def check_page(page, path, is_ours):
    page.open(path.as_uri())
    problems = page.errors() + [f"'{mark}'" for mark in page.evaluate(UNDRAWN)]
    problems += [f"no picture {src}" for src in page.evaluate(IMAGES)]
    if not is_ours:
        return problems
    if not page.evaluate(FORMULAS):
        problems.append("formulas are not drawn")
    problems += page.evaluate(FIGURES) + page.evaluate(OVERLAPPING)
    page.call("Emulation.setDeviceMetricsOverride", **PHONE)
    if page.evaluate(TOO_WIDE):
        problems.append("it is wider than a phone")
    page.call("Emulation.clearDeviceMetricsOverride")
    return problems + [error for error in page.errors() if error not in problems]


def follow_next(page, folder, course):
    """Clicks through the chapters as a reader does."""
    page.open((folder / "index.html").as_uri())
    seen = []
    for _ in course.chapters:
        address = page.evaluate('document.querySelector("a[rel=next]").href')
        page.open(address)
        seen.append(page.evaluate('document.querySelector(".title").textContent.trim()'))
    expected = [course.titles[c.name] for c in course.chain()]
    return [] if seen == expected else [f"following next shows {seen}, expected {expected}"]


def main():
    root, out = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    path = browser.program()
    if not path:
        print("skipped: there is no Chromium here (./lab install browser)")
        return SKIPPED
    course = Course(root)
    folder = out / "html"
    if not (folder / "index.html").exists():
        if not shutil.which("doxygen"):
            print("skipped: there is no doxygen here")
            return SKIPPED
        Site(course, out).build()
    pages = sorted(folder.glob("*.html"))
    ours = {"index"} | {f"ch{c.name}" for c in course.chapters} | {p.stem for p in (root / "docs").glob("*.md")}
    ours |= {part["id"] for part, _ in course.parts()}
    problems = []
    with browser.Browser(path) as page:
        for file in pages:
            problems += [f"{file.name}: {what}" for what in check_page(page, file, file.stem in ours)]
        problems += follow_next(page, folder, course)
    print("\n".join(problems))
    print(f"{len(pages)} pages opened, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
