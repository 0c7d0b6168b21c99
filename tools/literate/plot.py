"""Draws a recorded series as inline SVG: its colours are the page's (see docs/course.css)."""
import html
import math

FLAGS = ("loglog", "logx", "logy")
WIDTH, HEIGHT = 720, 340
LEFT, TOP, BOTTOM = 68, 18, 52
COLOURS = 6
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def short(value):
    """A tick label: 0.25, 40, 12k, 3M, 10⁻⁴."""
    size = abs(value)
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= scale * 0.9999:
            return f"{value / (1e3 if prefix == 'k' else scale):.4g}{prefix}"
    if 0 < size < 1e-3:
        power = math.floor(math.log10(size) + 1e-9)
        factor = value / 10**power
        return ("" if abs(factor - 1) < 1e-6 else f"{factor:.3g}·") + "10" + str(power).translate(
            SUPERSCRIPT)
    return f"{value:.6g}"


class Axis:
    """Maps values to pixels and chooses the ticks, on a linear or a logarithmic scale."""

    def __init__(self, values, start, end, log):
        self.start, self.end, self.log = start, end, log
        low, high = min(values), max(values)
        if log:
            self.low, self.high = self._log_range(low, high)
        else:
            self.low = 0.0 if 0 <= low <= 0.5 * high or low == high >= 0 else low
            self.high = high + 0.06 * (high - self.low) if high > self.low else self.low + 1
            if self.low < 0:
                self.low -= 0.06 * (high - self.low)

    @staticmethod
    def _log_range(low, high):
        if low == high:
            return low / 2, high * 2
        pad = (high / low) ** 0.04
        return low / pad, high * pad

    def __call__(self, value):
        scale = math.log if self.log else float
        part = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return self.start + part * (self.end - self.start)

    def ticks(self):
        if not self.log:
            return self._linear_ticks(5)
        decades = math.log10(self.high / self.low)
        if decades < 0.8:
            return self._linear_ticks(4)
        steps = (1, 2, 5) if decades < 3.2 else (1,)
        every = max(1, math.ceil(decades / 7))
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        marks = (m * 10.0**p for p in range(first, last + 1) if p % every == 0 for m in steps)
        return [t for t in marks if self.low <= t <= self.high]

    def _linear_ticks(self, count):
        span = self.high - self.low
        step = 10 ** math.floor(math.log10(span / count))
        step *= min((1, 2, 5, 10), key=lambda m: abs(span / (m * step) - count))
        first = math.ceil(self.low / step - 1e-9)
        return [round(i * step, 12) for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def parse(text):
    """(key, flag, caption) of what follows @plot."""
    key, _, rest = text.partition(" ")
    word, _, caption = rest.partition(" ")
    flag, caption = (word, caption) if word in FLAGS else ("", rest)
    return key, flag, " ".join(caption.split())


def points_of(series, name):
    """The (x, y) of a line, without the places where it has no value."""
    return [(x, y) for x, y in zip(series["x"], series["lines"][name])
            if x is not None and y is not None]


def describe(series):
    """The plot in words, for those who cannot see it."""
    said = []
    for name in series["lines"]:
        points = points_of(series, name)
        (x0, y0), (x1, y1) = points[0], points[-1]
        said.append(f"{name}: {y0:g} at {x0:g}" + (f", {y1:g} at {x1:g}" if len(points) > 1 else ""))
    return f"{series['y_label']} against {series['x_label']}. " + "; ".join(said) + "."


def spread(wanted, gap, low, high):
    """Moves heights apart so that labels do not overlap; keeps their order."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = {}
    floor = low
    for rank, i in enumerate(order):
        ceiling = high - gap * (len(order) - 1 - rank)
        placed[i] = floor = max(floor, min(wanted[i], ceiling))
        floor += gap
    return [placed[i] for i in range(len(wanted))]


def marker(index, x, y, tip):
    """A point; each line has its own shape, for those who do not tell colours apart."""
    shapes = ("M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0", "M-3.3-3.3h6.6v6.6h-6.6z",
              "M0-4.4L4 3H-4z", "M0-4.6L4.6 0L0 4.6L-4.6 0z", "M-4-3H4L0 4.4z",
              "M-4-1.2H-1.2V-4H1.2V-1.2H4V1.2H1.2V4H-1.2V1.2H-4z")
    return (f'<path class="dot c{index % COLOURS + 1}" transform="translate({x:.1f} {y:.1f})" '
            f'd="{shapes[index % len(shapes)]}"><title>{html.escape(tip)}</title></path>')


def check_series(series, log_x, log_y):
    """One sentence on what makes the series impossible to draw, or None."""
    if not series["lines"]:
        return "it has no lines"
    for name, ys in series["lines"].items():
        if len(ys) != len(series["x"]):
            return f"its line '{name}' has {len(ys)} values for {len(series['x'])} places on the x axis"
        points = points_of(series, name)
        if not points:
            return f"its line '{name}' has no values"
        if (log_x and min(x for x, _ in points) <= 0) or (log_y and min(y for _, y in points) <= 0):
            return f"its line '{name}' has a value that is not positive, on a logarithmic axis"
    return None


def frame(series, x_axis, y_axis, right):
    """Grid, ticks and axis titles."""
    out = []
    for y in y_axis.ticks():
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - right}" y1="{y_axis(y):.1f}" '
                   f'y2="{y_axis(y):.1f}"/><text class="tick" x="{LEFT - 9}" '
                   f'y="{y_axis(y) + 4:.1f}" text-anchor="end">{short(y)}</text>')
    base = HEIGHT - BOTTOM
    for x in x_axis.ticks():
        out.append(f'<line class="grid" x1="{x_axis(x):.1f}" x2="{x_axis(x):.1f}" y1="{base}" '
                   f'y2="{base + 5}"/><text class="tick" x="{x_axis(x):.1f}" y="{base + 20}" '
                   f'text-anchor="middle">{short(x)}</text>')
    out.append(f'<line class="base" x1="{LEFT}" x2="{WIDTH - right}" y1="{base}" y2="{base}"/>')
    out.append(f'<text class="axis" x="{(LEFT + WIDTH - right) / 2:.0f}" y="{HEIGHT - 8}" '
               f'text-anchor="middle">{html.escape(series["x_label"])}</text>')
    out.append(f'<text class="axis" transform="translate(16 {(TOP + base) / 2:.0f}) rotate(-90)" '
               f'text-anchor="middle">{html.escape(series["y_label"])}</text>')
    return out


def svg(series, caption, flag, identity):
    """The line chart of a series. A line with a single value is a labelled point."""
    log_x, log_y = flag in ("loglog", "logx"), flag in ("loglog", "logy")
    lines = {name: points_of(series, name) for name in series["lines"]}
    named = [name for name, points in lines.items() if len(points) > 1]
    right = 26 + min(250, max((int(7.6 * len(name)) for name in named), default=0))
    every = [point for points in lines.values() for point in points]
    x_axis = Axis([x for x, _ in every], LEFT, WIDTH - right, log_x)
    y_axis = Axis([y for _, y in every], HEIGHT - BOTTOM, TOP, log_y)
    out = [f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
           f'aria-labelledby="{identity}_title {identity}_desc">'
           f'<title id="{identity}_title">{html.escape(caption)}</title>'
           f'<desc id="{identity}_desc">{html.escape(describe(series))}</desc>']
    out += frame(series, x_axis, y_axis, right)
    ends = spread([y_axis(lines[name][-1][1]) for name in named], 17, TOP + 4, HEIGHT - BOTTOM)
    for index, (name, points) in enumerate(lines.items()):
        colour = f"c{index % COLOURS + 1}"
        at = [(x_axis(x), y_axis(y)) for x, y in points]
        if len(points) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
            out.append(f'<polyline class="line {colour}" points="{path}"/>')
            out.append(f'<text class="name {colour}" x="{at[-1][0] + 11:.1f}" '
                       f'y="{ends[named.index(name)] + 4:.1f}">{html.escape(name)}</text>')
        else:
            (x, y), side = at[0], at[0][0] > (LEFT + WIDTH - right) * 0.6
            out.append(f'<text class="name {colour}" x="{x + (-9 if side else 9):.1f}" '
                       f'y="{y - 8:.1f}" text-anchor="{"end" if side else "start"}">'
                       f'{html.escape(name)}</text>')
        if len(points) <= 60:
            out += [marker(index, px, py, f"{name}: {y:g} at {x:g}")
                    for (px, py), (x, y) in zip(at, points)]
    return "".join(out) + "</svg>"


def table(series):
    """The numbers of the plot, as an HTML table."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in series["lines"])
    rows = "".join(
        f"<tr><td>{x:g}</td>" + "".join(
            f"<td>{'' if ys[i] is None else format(ys[i], '.4g')}</td>"
            for ys in series["lines"].values()) + "</tr>"
        for i, x in enumerate(series["x"]))
    return (f'<table class="data"><caption>{html.escape(series["y_label"])}</caption>'
            f'<thead><tr><th>{html.escape(series["x_label"])}</th>{head}</tr></thead>'
            f'<tbody>{rows}</tbody></table>')


def draw(chapter, cell):
    """The HTML of a @plot; None before the first capture. @throws ChapterError."""
    key, flag, caption = parse(cell.text)
    if not caption:
        raise chapter.error(cell.line, f"@plot {key} needs a caption")
    series = chapter.series(key, cell.line)
    if series is None:
        return None
    problem = check_series(series, flag in ("loglog", "logx"), flag in ("loglog", "logy"))
    if problem:
        raise chapter.error(cell.line, f"the series '{key}' cannot be drawn: {problem}")
    drawing = svg(series, caption, flag, f"plot_{chapter.name}_{key}_{cell.line}")
    return (f'<figure class="plot"><div class="scroll" tabindex="0">{drawing}</div>'
            f"<figcaption>{html.escape(caption)}</figcaption>"
            f'<details class="data"><summary>The numbers</summary><div class="scroll" tabindex="0">'
            f"{table(series)}</div></details></figure>")
