# SPDX-License-Identifier: Apache-2.0
"""How figures look. Colours are Okabe and Ito's, which colour-blind readers can tell apart; each
line has a marker of its own besides. scripts/plot_sweep.py shares the settings, and how a picture
is written so that the same data gives the same bytes."""

import pathlib
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402 (after the choice of what draws)
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from plot_sweep import SETTINGS, svg_text  # noqa: E402

plt.rcParams.update(SETTINGS)

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PINK = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
LINES = [
    (BLUE, "o"),
    (ORANGE, "s"),
    (GREEN, "^"),
    (RED, "D"),
    (PINK, "v"),
    (BLACK, "x"),
    (SKY, "P"),
]

# A schedule looks the same in every figure.
SCHEDULES = {
    "binomial_pipeline": ("binomial pipeline", BLUE, "o"),
    "chain": ("chain", ORANGE, "s"),
    "binomial_tree": ("binomial tree", GREEN, "^"),
    "sequential": ("sequential", RED, "D"),
    "mpi": ("MPI, modelled", BLACK, "x"),
    "scatter_allgather": ("scatter + allgather", PINK, "v"),
    "circulant": ("circulant", SKY, "P"),
}


def figure(rows, columns, width=7.6, height=2.9, **rest):
    """A figure of rows x columns panels, each `height` inches high; and its axes,
    always in two dimensions."""
    return plt.subplots(rows, columns, figsize=(width, height * rows), squeeze=False, **rest)


def schedule_line(axes, x, y, schedule, **rest):
    label, colour, marker = SCHEDULES[schedule]
    axes.plot(x, y, color=colour, marker=marker, **{"label": label, **rest})


def line(axes, x, y, index, label, **rest):
    colour, marker = LINES[index]
    axes.plot(x, y, **{"color": colour, "marker": marker, "label": label, **rest})


def from_zero(axes):
    """The y axis from 0 to a little above the highest point, if there is one:
    a few cases may leave panels empty."""
    if axes.has_data() and axes.dataLim.y1 > 0:
        axes.set_ylim(0, 1.06 * axes.dataLim.y1)


def bytes_text(value, _position=None):
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g} B"


def count_text(value, _position=None):
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def plain(value, _position=None):
    return f"{value:g}"


def log_axis(axis, ticks, text=count_text):
    """An axis of powers with exactly these ticks, written out."""
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log", base=2)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(text))


def decades(axis):
    """A logarithmic axis of powers of ten with plain numbers."""
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    axis.set_major_formatter(
        FuncFormatter(lambda value, _position: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    )


LINE_INCHES = 0.22  # of a line of small text below the panels


def _leave_below(figure_, lines):
    """Makes the figure higher by so many lines, which stay free below the panels."""
    height = figure_.get_figheight() + LINE_INCHES * lines
    figure_.set_figheight(height)
    figure_.get_layout_engine().set(
        rect=(0, LINE_INCHES * lines / height, 0.99, 1 - LINE_INCHES * lines / height)
    )
    return height


def legend_below(figure_, axes, columns=5):
    """One legend for all panels, below them, of what `axes` shows."""
    handles, labels = axes.get_legend_handles_labels()
    columns = min(columns, len(labels))
    height = _leave_below(figure_, 1 + -(-len(labels) // columns))
    figure_.legend(
        handles,
        labels,
        loc="lower center",
        ncol=columns,
        bbox_to_anchor=(0.5, LINE_INCHES / height),
        borderaxespad=0,
    )


def svg(figure_, note, description):
    """The picture's text; `note` stands small at its bottom, `description` in its metadata."""
    if not figure_.legends:
        _leave_below(figure_, 1)
    figure_.text(0.01, 0.05 / figure_.get_figheight(), note, fontsize=7, color="#555555")
    text = svg_text(figure_, description)
    plt.close(figure_)
    return text
