# SPDX-License-Identifier: Apache-2.0
"""The blocks of code of a page in Markdown, and when two outputs of a command are the same.

A fenced block says what it is: `sh` has commands; `console` has commands, each behind "$ ", and
below each all that it prints; `text NAME` and other languages with a NAME are files that commands
below use; other blocks are neither. A console block whose last line begins with "# not compared: "
gives the reason; one of `console long` takes minutes. Indented blocks are as `sh`."""
import dataclasses
import re
import textwrap

WIDTH = 100
NOT_COMPARED = "# not compared: "
#: What these print are times of this machine; the others compute, and print the same everywhere.
MEASURES = re.compile(r"prepost (run|node|push|calibrate|probe|compare(?!.* --clock virtual)) ")


@dataclasses.dataclass
class Block:
    language: str
    words: list  # behind the language
    lines: list
    begin: int  # of its first line, from 0
    indent: str = ""  # of the block, as in a list


@dataclasses.dataclass
class Shown:
    """A command, and what the page shows of its output; None: nothing."""

    command: str
    output: list | None = None
    begin: int = 0  # of its command's first line, in the block, and of its output's
    output_begin: int = 0
    reason: str = ""  # why it is not compared


def blocks(text):
    lines, i = text.splitlines(), 0
    while i < len(lines):
        fence = re.match(r"(\s*)```(.*)", lines[i])
        if fence:
            end = next(j for j in range(i + 1, len(lines)) if lines[j].strip() == "```")
            language, *words = fence[2].split() or [""]
            yield Block(
                language,
                words,
                [line.removeprefix(fence[1]) for line in lines[i + 1 : end]],
                i + 1,
                fence[1],
            )
            i = end
        elif lines[i].startswith("    ") and (i == 0 or not lines[i - 1].strip()):
            end = i
            while end < len(lines) and lines[end].startswith("    "):
                end += 1
            yield Block("indented", [], [line[4:] for line in lines[i:end]], i, "    ")
            i = end - 1
        i += 1


def joined(lines, begin):
    """The command that begins in line `begin`, without its continuations,
    and the line behind it."""
    words, end = [], begin
    while True:
        line = lines[end].removeprefix("$ ") if end == begin else lines[end]
        end += 1
        words.append(line.strip().removesuffix("\\").strip())
        if not line.endswith("\\") or end == len(lines):
            return " ".join(words), end


def commands(block):
    """The commands of prepost of a block, and of a console block all, as Shown."""
    if block.language == "console":
        last = block.lines[-1]
        reason = last.removeprefix(NOT_COMPARED) if last.startswith(NOT_COMPARED) else ""
        end = len(block.lines) - (1 if reason else 0)
        i = 0
        while i < end:
            assert block.lines[i].startswith(
                "$ "
            ), f"line {block.begin + i + 1}: expected '$ ' and a command"
            command, output = joined(block.lines, i)
            behind = next((j for j in range(output, end) if block.lines[j].startswith("$ ")), end)
            yield Shown(command, block.lines[output:behind], i, output, reason)
            i = behind
    elif block.language in ("sh", "indented"):
        i = 0
        while i < len(block.lines):
            command, behind = joined(block.lines, i)
            if command.startswith("prepost "):
                yield Shown(command, begin=i)
            i = behind


def files_named(text):
    """Files and folders of the source that a page names in its text, but for forms with a NAME."""
    found = re.findall(
        r"`((?:include|library|ir|compiler|runtime|backends|sim|viz|tools|python|tests|bench"
        r"|scripts|examples)/[\w./-]+)`",
        text,
    )
    return [name for name in found if "NAME" not in name]


def anchors(text):
    """What links into a page can name: its headings, as GitHub writes them in addresses."""
    found, is_code = set(), False
    for line in text.splitlines():
        is_code ^= line.lstrip().startswith("```")
        heading = re.match(r"#+ (.*)", line)
        if heading and not is_code:
            slug = re.sub(
                r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            ).replace(" ", "-")
            found.add(
                next(
                    name
                    for n in range(1000)
                    if (name := slug if n == 0 else f"{slug}-{n}") not in found
                )
            )
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def dead_links(path):
    """Links of the page at `path` to files and headings that are not there."""
    text = path.read_text()
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        other = path.parent / name if name else path
        if not other.exists() or (
            anchor and other.suffix == ".md" and anchor not in anchors(other.read_text())
        ):
            yield target


def masked(text, measures):
    """`text` without what differs from run to run and from machine to machine, and however its
    lines are wrapped. Of what is counted only two counts of CPU-driven hosts differ, as completions
    come together or not, and the least of preposted ones, of whom one may find all done before it
    waits; of numbers without a unit those of compare's tables."""
    text = " ".join(text.split())
    if not measures:
        return text
    text = re.sub(r"\b[0-9a-f]{64}\b", "SUM", text)
    text = re.sub(
        r"(wake-ups|requests for events during it) \d+(\.\.\d+)? (\d+\.\.)?(\d+)",
        r"\1 COUNTS \4",
        text,
    )
    text = re.sub(r"\bon \d+ cores?\b", "on CORES", text)
    text = re.sub(r"\d+(\.\d+)? [kMGT]?B/s", "RATE", text)
    text = re.sub(r"\d+(\.\d+)? (ns|us|ms|s)\b", "TIME", text)
    text = re.sub(
        r"\d+\.\d+ by medians; by pair \d+\.\d+ to \d+\.\d+, median \d+\.\d+", "RATIOS", text
    )
    head, table, rest = text.partition("milliseconds cpu-driven preposted")
    return head + table + re.sub(r"\b\d+\.\d{3}\b", "TIME", rest)


def wrapped(text):
    """The lines of `text` as a page shows them: tables stay as they are, and what the command has
    wrapped is wrapped anew."""
    lines = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if (
            lines
            and indent >= 12
            and len(lines[-1]) > WIDTH - 20
            and len(re.split(r"\s{2,}", line.strip())) == 1
        ):
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
    for line in lines:
        if len(line) <= WIDTH or len(re.split(r"\s{2,}", line.strip())) > 3:
            yield line.rstrip()
            continue
        columns = re.match(r" *\S.*?\s{2,}", line)
        indent = (
            len(columns[0])
            if columns and len(columns[0]) < 40
            else len(line) - len(line.lstrip()) + 2
        )
        yield from textwrap.wrap(
            line,
            WIDTH,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
