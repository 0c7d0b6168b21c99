"""The literate tools from the command line: python3 tools/literate COMMAND ...

    check                                   is every captured number current and every claim true?
    capture NN --binary B [--threads N]     run a chapter, keep its output in its captured.json
    site --out DIR                          the whole site (needs doxygen): DIR/html
    page NN --out DIR                       one chapter's page, for Doxygen
    notebook NN --out DIR                   one chapter's notebook
    split, run, figure                      what the notebooks call

NN is a chapter's number or name, or its folder. The format of a chapter: tools/literate/__init__.py.
"""
import argparse
import json
import pathlib
import sys

sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

from literate import capture, check, figure, notebook, page, site  # noqa: E402
from literate.chapter import Chapter  # noqa: E402
from literate.course import Course  # noqa: E402
from literate.errors import ChapterError  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(prog="literate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, *chapter):
        sub = commands.add_parser(name)
        sub.add_argument("--root", type=pathlib.Path, default=ROOT, help="the repository")
        if chapter:
            sub.add_argument("chapter", nargs=chapter[0])
        return sub

    command("check", "*")
    sub = command("capture", None)
    sub.add_argument("--binary", type=pathlib.Path, required=True)
    sub.add_argument("--threads", type=int, default=0)
    command("site").add_argument("--out", type=pathlib.Path, required=True)
    for name in ("page", "notebook"):
        command(name, "*").add_argument("--out", type=pathlib.Path, required=True)
    command("split", None).add_argument("--into", type=pathlib.Path, required=True)
    sub = command("run", None)
    sub.add_argument("--parts", type=pathlib.Path, required=True)
    sub.add_argument("--section")
    sub = command("figure", None)
    sub.add_argument("name")
    sub.add_argument("--parts", type=pathlib.Path)
    return parser.parse_args()


def one_chapter(args):
    folder = pathlib.Path(args.chapter)
    return Chapter(folder) if folder.is_dir() else Course(args.root).find([args.chapter])[0]


def write_pages(args):
    course = Course(args.root)
    args.out.mkdir(parents=True, exist_ok=True)
    for chapter in course.find(args.chapter):
        if args.command == "page":
            text = page.Page(chapter, course.titles, *course.neighbours(chapter)).markdown()
            (args.out / f"{chapter.name}.md").write_text(text)
        else:
            text = notebook.dump(chapter, course.plan["repository"])
            (args.out / f"{chapter.name}.ipynb").write_text(text)
    return 0


def main():
    args = arguments()
    if args.command == "check":
        problems = check.check_all(Course(args.root), args.chapter)
        print("\n".join(problems) or "every captured number is current and every claim holds")
        return 1 if problems else 0
    if args.command == "capture":
        code = capture.capture(one_chapter(args), args.binary, args.threads)
        if code:
            print("this chapter needs hardware that is not here; its captured.json is as it was")
        return code
    if args.command == "site":
        return site.build(Course(args.root), args.out)
    if args.command == "split":
        notebook.split(one_chapter(args), args.into)
        return 0
    if args.command == "run":
        return notebook.run_parts(one_chapter(args), args.parts, args.section)
    if args.command == "figure":
        run = notebook.results(args.parts) if args.parts else None
        print(figure.standalone(one_chapter(args), args.name, run))
        return 0
    return write_pages(args)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ChapterError, json.JSONDecodeError) as error:
        sys.exit(f"error: {error}")
