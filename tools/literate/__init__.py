"""From one literate source (C++ or CUDA) to a page, a notebook and checks.

The format has one rule: a line that begins with `//!` is prose (Markdown, math in $...$ and
$$...$$), and any other line is code. A prose line that begins with @ is a directive.

Front matter, before the first line of code:

    # TITLE                 the chapter's title
    @summary TEXT           one sentence, for tables and the map
    @learn TEXT             a learning objective; one directive for each
    @builds-on NAME...      @next NAME     @time MINUTES     @exercise NAME
    @uses FILE...           library files (or globs) whose change makes the capture stale

Anywhere:

    @fold TITLE             collapse the next code cell
    @output SECTION         what the run printed in that section
    @plot KEY [loglog|logx|logy] CAPTION      a recorded series, drawn
    @figure NAME CAPTION    the moving figure figures/NAME.js, fed with the recorded numbers
    @show FILE:REGION       the lines of FILE between `// [region REGION]` and `// [endregion]`
    @predict TEXT           a question to answer before reading on
    @answer TEXT            its answer, folded
    @expect KEY OP VALUE    a claim about a recorded number; VALUE is a number or another KEY

The TEXT and CAPTION of @summary, @learn, @plot, @figure, @predict and @answer go on until an empty
line, the next directive, or code. {{KEY}} in prose is the recorded number KEY, {{KEY:.1f}} the
same in a Python format, {{KEY:si}} with its unit and a prefix (3.2 MB), {{KEY:iec}} likewise
with binary prefixes (3.1 MiB).
"""
