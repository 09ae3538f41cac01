#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the CSV of `prepost simulate --sweep`, which comes on stdin, as SVG on stdout. The command
contains this file and calls it for --plot. The argument is what the CSV does not say, as JSON: "y",
the figure that is drawn; "head", lines above it; "axes", the swept keys, each with "key", its
"column", "unit" ("", "B", "s", "B/s"), whether it is "numeric", and "values", how many it has;
"log", whether the first one is logarithmic; "seeds", how many runs the statistics of each row are
of, or 0 of one run. A curve is drawn over the first axis for each executor and combination of the
others, of several seeds the median with a band from the 5th to the 95th percentile. With --check as
a second argument nothing is read or drawn. Exit codes: 0; 1 nothing to plot; 2 too many curves; 3
no matplotlib. What is wrong stands on stdout.

bench/figures/style.py shares SETTINGS and svg_text(). The same data gives the same bytes: a fixed
salt for ids, and no date."""

import csv
import importlib.util
import io
import itertools
import json
import math
import os
import re
import sys

CURVES_MAX = 12  # in one panel can be told apart
PANELS_MAX = 24
WIDE_RANGE = 20  # from which on the y axis is logarithmic
MARKED_POINTS_MAX = 40  # of a curve

SETTINGS = {
    "svg.hashsalt": "prepost",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.constrained_layout.use": True,
    "savefig.facecolor": "white",
}
# Okabe and Ito's, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
# More of them, for names that have no order.
MORE_COLOURS = (*COLOURS, "#882255", "#999933", "#332288", "#777777", "#8B4513", "#000000")
MARKERS = "osD^vPX<>hpd"
SAME = 1e-3  # of the value: curves that are nowhere further apart lie on each other
BAND_ALPHA = 0.2
LEGEND_OF_SEEDS = "median of {} seeds;\nband: 5th to 95th\npercentile"
EXECUTORS = {"offload": "preposted", "cpu": "CPU-driven"}


def svg_text(figure, description):
    """The picture's text, `description` in its metadata."""
    out = io.BytesIO()
    figure.savefig(
        out, format="svg", metadata={"Date": None, "Creator": None, "Description": description}
    )
    text = out.getvalue().decode()
    text = re.sub(r"<!-- Created with matplotlib.*?-->\n", "", text)
    # Ids by their order: some of matplotlib's hang on addresses.
    names = {
        name: f"i{index}"
        for index, name in enumerate(
            dict.fromkeys(re.findall(r'id="([A-Za-z][0-9a-f]{10})"', text))
        )
    }
    text = re.sub(r"\b[A-Za-z][0-9a-f]{10}\b", lambda found: names.get(found[0], found[0]), text)
    # Hundredths of a point are enough for places.
    places = re.compile(r"(?<=[ \"(,])(-?[1-9]\d*)\.(\d{3,})(?=[ \",)])")
    text = re.sub(
        r"<[^>]*>", lambda tag: places.sub(lambda found: f"{float(found[0]):.2f}", tag[0]), text
    )
    return "\n".join(line.strip() for line in text.splitlines()) + "\n"


def fail(code, message):
    print(message)
    sys.exit(code)


def number_text(value, unit, digits=9):
    """0.0025 s is 2.5 ms, 65536 B are 64 KiB, 1.25e9 B/s are 10 Gbit/s;
    without a unit just the number."""
    if unit == "B/s":
        value, unit = 8 * value, "bit/s"
    if unit == "B" and value and value % 1024 == 0:
        power = 0
        while power < 4 and value % 1024 == 0:
            value, power = value / 1024, power + 1
        return f"{value:.{digits}g} {('', 'Ki', 'Mi', 'Gi', 'Ti')[power]}B"
    if not unit or not value:
        return f"{value:.{digits}g}"
    # A little more than the value, so that 999.9999 n is 1 µ.
    step = min(max(math.floor(math.log10(abs(value) * (1 + 1e-9)) / 3), -4), 4)
    return f"{value / 1000.0**step:.{digits}g} {'pnµm kMGT'[step + 4].strip()}{unit}"


def cut_into_panels(sizes):
    """Into how many parts each dimension is cut, so that panels are few and each has CURVES_MAX
    curves at most: whole dimensions rather than parts of one, and the first rather than later
    ones."""
    curves = math.prod(sizes)
    best = None
    if curves <= CURVES_MAX * PANELS_MAX:
        for parts in itertools.product(*(range(1, size + 1) for size in sizes)):
            part_sizes = [-(-size // part) for size, part in zip(sizes, parts)]
            is_cut = all(
                -(-size // part_size) == part
                for size, part, part_size in zip(sizes, parts, part_sizes)
            )
            if not is_cut or math.prod(parts) > PANELS_MAX or math.prod(part_sizes) > CURVES_MAX:
                continue
            cost = math.prod(parts) + 4 * sum(1 < part < size for size, part in zip(sizes, parts))
            if best is None or cost <= best[0]:
                best = (cost, parts)
    if best is None:
        fail(
            2,
            (
                f"{curves} curves do not fit in {PANELS_MAX} panels of {CURVES_MAX}: sweep fewer"
                " values, or one executor"
            ),
        )
    return best[1]


def statistic_of(row, y, statistic):
    """What figure_of() is of one run, of a row of several seeds: its "p50"."""
    names = {
        "of-bound": ["of_bound"],
        "skew": ["skew_seconds"],
        "known": ["known_seconds"],
        "bandwidth": ["aggregate_bytes_per_second", "bandwidth_bytes_per_second"],
    }.get(y, ["completion_seconds"])
    found = next((row[f"{it}.{statistic}"] for it in names if row.get(f"{it}.{statistic}")), "nan")
    return (8 if y == "bandwidth" else 1) * float(found)


def figure_of(row, y):
    """NaN where there is none."""

    def number(column):
        return float(row.get(column) or "nan")

    if y != "bandwidth":
        return number(
            {"of-bound": "of_bound", "skew": "skew_seconds", "known": "known_seconds"}.get(
                y, "completion_seconds"
            )
        )
    if row.get("aggregate_bytes_per_second"):
        return 8 * number("aggregate_bytes_per_second")
    return 8 * number("message_bytes") / number("completion_seconds")


def figures_of(row, options):
    """Of one run its figure; of several seeds what is drawn of them."""
    y = options["y"]
    if not options["seeds"]:
        return [figure_of(row, y)]
    return [statistic_of(row, y, statistic) for statistic in ("p50", "p5", "p95")]


def y_label(y, has_groups):
    if y == "bandwidth":
        return (
            "all messages / time until all groups are complete"
            if has_groups
            else "message / time until all nodes have it"
        ), "bit/s"
    return {
        "of-bound": ("time until all nodes have it / network bound", ""),
        "skew": ("last node's time - first node's", "s"),
        "known": ("time until all hosts know", "s"),
    }.get(
        y,
        (
            "time until all groups are complete" if has_groups else "time until all nodes have it",
            "s",
        ),
    )


def labels_of(axis, values):
    """As people read them, a profile by its file's stem;
    all as they are if two would be called alike."""
    key = "" if axis["key"] in ("profile", "algorithm") else axis["key"] + " "
    labels = {
        value: number_text(float(value), axis["unit"]) if axis["numeric"] else value
        for value in values
    }
    if axis["key"] == "profile":
        labels = {value: os.path.basename(value).removesuffix(".json") for value in values}
    if len(set(labels.values())) < len(values):
        labels = {value: value for value in values}
    return {value: key + label for value, label in labels.items()}


class Points(dict):
    """By x: y; of several seeds also `band`, by x what lies below and above."""

    def __init__(self):
        super().__init__()
        self.band = {}

    def __eq__(self, other):
        return dict.__eq__(self, other) and self.band == other.band


class Curves:
    """By executor and by the values of all axes but the first: the points.
    `axes` are those that tell curves apart."""

    def __init__(self, options, rows):
        x, *others = options["axes"]
        # The executor of a curve says what that axis has.
        self.axes = [axis for axis in others if axis["key"] != "executor"]
        self.points = {executor: {} for executor in EXECUTORS}
        values = [{} for _ in self.axes]
        for row in rows:
            combination = tuple(row[axis["column"]] for axis in self.axes)
            for known, value in zip(values, combination):
                known[value] = None
            if row["error"]:
                continue
            y, *band = figures_of(row, options)
            if math.isfinite(y):
                executor = row.get("chosen_executor") or row["executor"]
                points = self.points[executor].setdefault(combination, Points())
                points[float(row[x["column"]])] = y
                if band:
                    points.band[float(row[x["column"]])] = band
        self.points = {executor: found for executor, found in self.points.items() if found}
        if not self.points:
            fail(1, "there is nothing to plot")
        self.values = [list(known) for known in values]
        self.labels = [labels_of(axis, known) for axis, known in zip(self.axes, self.values)]
        combinations = math.prod(map(len, self.values))
        # One curve of several combinations stands for all.
        self.merged = {
            executor
            for executor, found in self.points.items()
            if 1 < combinations == len(found)
            and all(it == next(iter(found.values())) for it in found.values())
        }
        self.apart = [executor for executor in self.points if executor not in self.merged]
        self.sizes = [max(1, len(self.apart)), *map(len, self.values)]
        count = sum(
            1 if executor in self.merged else len(found) for executor, found in self.points.items()
        )
        self.parts = [1] * len(self.sizes) if count <= CURVES_MAX else cut_into_panels(self.sizes)
        self.part_sizes = [-(-size // part) for size, part in zip(self.sizes, self.parts)]

    def panels(self):
        """Title and curves (executor, name, colour's number, points)
        of each panel that has some."""
        for parts in itertools.product(*map(range, self.parts)):
            curves = [
                curve
                for executor, found in self.points.items()
                for curve in self.in_panel(executor, found, parts)
            ]
            if curves:
                yield self.title(parts), curves

    def in_panel(self, executor, found, parts):
        if executor in self.merged:
            yield executor, EXECUTORS[executor], None, next(iter(found.values()))
            return
        for combination, points in found.items():
            places = [
                self.apart.index(executor),
                *(known.index(value) for known, value in zip(self.values, combination)),
            ]
            if tuple(place // size for place, size in zip(places, self.part_sizes)) != parts:
                continue
            name = [EXECUTORS[executor]] if self.parts[0] == 1 else []
            colour = 0
            for i, value in enumerate(combination, start=1):
                colour = colour * self.part_sizes[i] + places[i] % self.part_sizes[i]
                if self.parts[i] == 1 or self.part_sizes[i] > 1:
                    name.append(self.labels[i - 1][value])
            yield executor, ", ".join(name) or EXECUTORS[executor], colour, points

    def title(self, parts):
        """What all curves of a panel have in common: "CPU-driven, nodes 2 to 16"."""
        title = [EXECUTORS[self.apart[parts[0]]]] if self.parts[0] > 1 else []
        for i, axis in enumerate(self.axes, start=1):
            if self.parts[i] == 1:
                continue
            labels = list(self.labels[i - 1].values())[parts[i] * self.part_sizes[i] :][
                : self.part_sizes[i]
            ]
            end = labels[-1].removeprefix(axis["key"] + " ")
            title.append(
                labels[0]
                + (f" {'and' if len(labels) == 2 else 'to'} {end}" if len(labels) > 1 else "")
            )
        return ", ".join(title)


def coincide(a, b):
    return a.keys() == b.keys() and all(
        math.isclose(p, q, rel_tol=SAME)
        for x in a
        for p, q in zip([a[x], *a.band.get(x, [])], [b[x], *b.band.get(x, [])])
    )


def groups_of(curves):
    """The curves of a panel, those that lie on each other together."""
    groups = []
    for curve in curves:
        group = next((it for it in groups if coincide(it[0][-1], curve[-1])), None)
        if group is None:
            groups.append([curve])
        else:
            group.append(curve)
    return groups


def legend_places(panels):
    """By a curve's name its place in the legends of all panels:
    from top to bottom as the curves end, in the mean."""
    ends = {}
    for _, curves in panels:
        for _, name, _, points in curves:
            ends.setdefault(name, []).append(points[max(points)])
    names = sorted(ends, key=lambda name: -math.fsum(ends[name]) / len(ends[name]))
    return {name: place for place, name in enumerate(names)}


def style_of(curve, count, is_ordered):
    """A combination has one colour and marker; CPU-driven curves are dashed, with empty markers. A
    scale of colours is for values in order."""
    import matplotlib

    executor, _, number, points = curve
    if number is None:
        colour, marker = "#000000", "o"
    elif count == 1:
        place = list(EXECUTORS).index(executor)
        colour, marker = COLOURS[place], MARKERS[place]
    else:
        few = COLOURS if is_ordered else MORE_COLOURS
        colour = (
            few[number]
            if count <= len(few)
            else matplotlib.colormaps["viridis"](0.9 * number / (count - 1))
        )
        marker = MARKERS[number % len(MARKERS)]
    is_cpu = executor == "cpu"
    return {
        "color": colour,
        "marker": marker if len(points) <= MARKED_POINTS_MAX else None,
        "linestyle": "--" if is_cpu else "-",
        "markerfacecolor": "white" if is_cpu else colour,
    }


def spread(values, is_log):
    """Of sorted values those that have room for their text on an axis."""
    place = math.log if is_log else float
    kept = values[:1]
    for value in values[1:]:
        if place(value) - place(kept[-1]) >= 0.12 * (place(values[-1]) - place(values[0])):
            kept.append(value)
    return kept


def draw_curve(axes, points, label, style):
    """The line, with its band behind it."""
    at = sorted(points)
    if points.band:
        low, high = zip(*(points.band[x] for x in at))
        look = {"color": style["color"], "alpha": BAND_ALPHA}
        if len(at) == 1:  # has no width
            axes.vlines(at, low, high, linewidth=4, **look)
        else:
            axes.fill_between(at, low, high, linewidth=0, **look)
    return axes.plot(at, [points[x] for x in at], label=label, **style)[0]


def draw_axes(axes, options, xs, ys, has_groups):
    from matplotlib import ticker

    x = options["axes"][0]
    if options["log"]:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    if options["log"] or len(xs) <= 10:
        axes.xaxis.set_major_locator(ticker.FixedLocator(spread(xs, options["log"])))
    else:
        axes.xaxis.set_major_locator(ticker.MaxNLocator(8))
    axes.xaxis.set_major_formatter(
        ticker.FuncFormatter(lambda value, _: number_text(value, x["unit"], 6))
    )
    axes.set_xlabel(x["key"])
    text, unit = y_label(options["y"], has_groups)
    if min(ys) > 0 and max(ys) > WIDE_RANGE * min(ys):
        axes.set_yscale("log")
        subs = (1, 2, 5) if max(ys) < 1000 * min(ys) else (1,)
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=subs, numticks=30))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
    else:
        axes.set_ylim(min(0, min(ys)), 1.06 * max(ys) or 1)
    axes.yaxis.set_major_formatter(
        ticker.FuncFormatter(lambda value, _: number_text(value, unit, 6))
    )
    axes.set_ylabel(text)


def draw(options, rows):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(SETTINGS)
    panels = list(Curves(options, rows).panels())
    curves = [curve for _, in_panel in panels for curve in in_panel]
    xs = sorted({x for *_, points in curves for x in points})
    ys = [
        y for *_, points in curves for y in itertools.chain(points.values(), *points.band.values())
    ]
    colours = 1 + max(number or 0 for _, _, number, _ in curves)
    is_ordered = all(axis["numeric"] for axis in options["axes"][1:] if axis["key"] != "executor")
    places = legend_places(panels)
    columns = 1 if len(panels) == 1 else 2 if len(panels) <= 4 else 3
    lines = -(-len(panels) // columns)
    width, height = {1: (6.4, 4.6), 2: (4.8, 3.9), 3: (3.9, 3.3)}[columns]
    legend_title = LEGEND_OF_SEEDS.format(options["seeds"]) if options["seeds"] else None
    texts = [name for _, name, *_ in curves] + (legend_title or "").split("\n")
    legend_width = 0.7 + 0.07 * max(map(len, texts))
    figure_width = max(columns * (width + legend_width), 8)
    figure, grid = plt.subplots(
        lines,
        columns,
        figsize=(figure_width, height * lines + 0.5),
        squeeze=False,
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    has_groups = any(row.get("aggregate_bytes_per_second") for row in rows)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (title, in_panel) in zip(grid.flat, panels):
        lines_by_place = {}
        for group in groups_of(in_panel):
            group.sort(key=lambda curve: places[curve[1]])
            curve = group[0]
            label = ",\n".join(name for _, name, *_ in group)
            style = style_of(curve, colours, is_ordered)
            lines_by_place[places[curve[1]]] = draw_curve(axes, curve[-1], label, style)
        draw_axes(axes, options, xs, ys, has_groups)
        axes.tick_params(labelbottom=True, labelleft=True)
        axes.set_title(title, loc="left", fontweight="bold")
        handles = [lines_by_place[place] for place in sorted(lines_by_place)]
        axes.legend(
            handles=handles,
            loc="center left",
            bbox_to_anchor=(1, 0.5),
            handlelength=3,
            title=legend_title,
            title_fontsize=SETTINGS["legend.fontsize"],
            alignment="left",
        )
    headline, *rest = options["head"]
    chars = int(13 * figure_width)
    wrapped = [part for line in rest for part in re.findall(rf".{{1,{chars}}}(?:\s+|$)|\S+", line)]
    figure.suptitle(
        "\n".join([headline, *(part.strip() for part in wrapped)]), x=0.01, ha="left", fontsize=9
    )
    return svg_text(figure, headline)


def main():
    if importlib.util.find_spec("matplotlib") is None:
        sys.exit(3)
    options = json.loads(sys.argv[1])
    if sys.argv[2:] == ["--check"]:
        cut_into_panels(
            [
                options["executors"],
                *(axis["values"] for axis in options["axes"][1:] if axis["key"] != "executor"),
            ]
        )
        return
    sys.stdin.reconfigure(encoding="utf-8", newline="")
    sys.stdout.reconfigure(encoding="utf-8")
    lines = itertools.dropwhile(lambda line: line.startswith("#"), sys.stdin)
    sys.stdout.write(draw(options, list(csv.DictReader(lines))))


if __name__ == "__main__":
    main()
