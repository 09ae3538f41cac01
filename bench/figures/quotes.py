# SPDX-License-Identifier: Apache-2.0
"""The papers' words that the page quotes, and where each stands. Quotation marks are for nothing
else on the page but a paper's title; scripts/figures fails where words without an entry here are in
such marks, or where the paragraph that quotes them does not name paper and section.

The papers' texts are not in the repository:
whoever adds an entry copies the words from the text."""

import re

from .claims import DSN, EARLIER, KISSEL, PUSHING

QUOTES = {
    "just 4x as long to make 511 replicas of a large object as to make 1": (EARLIER, "4.2"),
    "it takes just a few times as long to make hundreds of replicas as it takes to make 1": (
        PUSHING,
        "7",
    ),
    "127, 255 or 511 copies, the total time required is almost the same": (PUSHING, "5.2.2"),
    "about a third of a second": (EARLIER, "4.1"),
    "4 or 8 replicas for nearly the same price as for 1": (PUSHING, "7"),
    "only slightly more than the time it would take to send the entire message between two nodes": (
        EARLIER,
        "4.2",
    ),
    "almost twice as fast as binomial tree and around three times as fast as sequential send": (
        PUSHING,
        "5.2.2",
    ),
    "is around 93 Gb/s of data replicated, which translates to about a petabyte per day": (
        PUSHING,
        "5.2.2",
    ),
    "nearly the full bisection capacity of Fractus": (PUSHING, "5.2.2"),
    "no sign of interference between concurrent overlapping transfer": (DSN, "5.2.2"),
    "our peak rates (seen in patterns with concurrent senders) was quite close to the limits": (
        PUSHING,
        "5.2.2",
    ),
    (
        "the bisection bandwidth asymptotes to 16Gbps for this pattern of communication, and our"
        " graphs do so as well, at least for the larger groups"
    ): (PUSHING, "5.2.2"),
    "bandwidth splits between them": (EARLIER, "3"),
    "lagged in groups with as few as 16 nodes": (EARLIER, "3.1"),
    "just 40% of the throughput of the binomial pipeline": (EARLIER, "3.1"),
    "Chain send is also the worst case for delivery skew": (EARLIER, "3.1"),
    "performed well": (EARLIER, "3.1"),
    "half the data would traverse the TOR": (EARLIER, "3.1"),
    (
        "highest in the unicast case and remains high but fairly stable for replication groups of"
        " up to 8 nodes"
    ): (EARLIER, "4.2"),
    "a 100Gbps NIC can potentially send and receive 100Gbps concurrently": (PUSHING, "4.3"),
    "performance tails off at the largest sizes": (EARLIER, "4.2"),
    "even then achieves a high percentage of the possible unicast speed": (EARLIER, "4.2"),
    "almost no performance degradation at larger scales": (EARLIER, "4.2"),
    "chain send and binomial pipeline do extremely well here": (EARLIER, "4.2"),
    "which transfer full objects before relaying can occur, degrade very quickly": (EARLIER, "4.2"),
    "unable to pick any size that will get extremely high overall bandwidth": (EARLIER, "4.2"),
    "can be less than it would take to perform a unicast transfer over the slowest link": (
        EARLIER,
        "4.2",
    ),
    "when that link is only slower by a few tenths of a Gb/s": (EARLIER, "4.2"),
    (
        "is more susceptible to this phenomenon because each node is responsible for the transfer"
        " to all of its neighbors in the hypercube"
    ): (PUSHING, "5.3"),
    "more susceptible": (PUSHING, "5.3"),
    "an analogous result probably applies": (EARLIER, "4.3"),
    "is highly efficient and achieves the lowest possible latency and skew": (PUSHING, "4.3.1"),
    "unchanged for all message sizes below the network MTU": (EARLIER, "4.2"),
    "surprisingly robust to delay and scheduling phenomena": (EARLIER, "4.2"),
    "less than 1% CPU utilization and only about 20% decrease in bandwidth for large messages": (
        EARLIER,
        "3.2",
    ),
    "only about 20% decrease in bandwidth for large messages": (EARLIER, "3.2"),
    "to around 10% for 100 MB transfers and 50% for 1 MB transfers": (PUSHING, "5.2.3"),
    "only a minimal difference": (PUSHING, "5.2.3"),
    "the bandwidth impact is quite minimal, particularly for large transfers": (PUSHING, "5.2.3"),
    "There is no noticeable difference between pure polling and the hybrid scheme": (
        PUSHING,
        "figure 11",
    ),
    (
        "while the sender transmits each block slightly faster (since it isn't receiving at the"
        " same time) and then must wait for the other nodes to catch up"
    ): (PUSHING, "figure 5"),
    "forced the sender to delay on the following step": (PUSHING, "5.2.1"),
    (
        "forced the sender to delay on the following step when it discovered that the target for"
        " its next block wasn't ready yet"
    ): (PUSHING, "5.2.1"),
    "further reducing latency": (PUSHING, "abstract"),
    "around 1%": (PUSHING, "5.2.1"),
    "would mitigate": (PUSHING, "5.2.1"),
    "skew is 1": (PUSHING, "4.3"),
    "approximately 9.3Gb/s": (KISSEL, "V.A"),
    "by over 300%": (KISSEL, "V.A"),
    "over a 6-fold improvement in the highest latency and loss case": (KISSEL, "V.A"),
    "As latency increases beyond 60ms, both single and parallel TCP performance begins to drop": (
        KISSEL,
        "V.B",
    ),
    (
        "severely backs off, and even parallel TCP streams is unable to consistently saturate the"
        " path"
    ): (KISSEL, "V.C"),
}
TITLES = {
    "Pushing Bytes",
    "Evaluating High Performance Data Transfer with RDMA-based Protocols in Wide-Area Networks",
}


def paragraphs(text):
    """(first line, its words on one line): what is between empty lines, and each row of a table and
    each item of a list by itself."""
    begin, lines = 1, []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if lines and (not line or line.startswith(("|", "* "))):
            yield begin, " ".join(lines)
            lines = []
        if line:
            begin = begin if lines else number
            lines.append(line.strip())


def names(paragraph, paper, section):
    """Whether the paragraph has the paper's name, and then the section,
    before another paper's name."""
    parts = re.split(f"(?={'|'.join(map(re.escape, (PUSHING, EARLIER, DSN, KISSEL)))})", paragraph)
    return any(
        part.startswith(paper) and re.search(rf"(?<![\d.]){re.escape(section)}(?![\d.]*\d)", part)
        for part in parts
    )


def problems(text):
    """Words in quotation marks that no paper is named for,
    and entries that the page does not quote, in words."""
    found, said = set(), []
    for line, paragraph in paragraphs(text):
        for quote in re.findall("“([^”]*)”", paragraph):
            if quote in TITLES:
                continue
            found.add(quote)
            if quote not in QUOTES:
                said.append(
                    f"{line}: “{quote}” is in quotation marks, and quotes.py does not have it"
                )
            elif not names(paragraph, *QUOTES[quote]):
                said.append(
                    f"{line}: “{quote}” is quoted without its source, {', '.join(QUOTES[quote])}"
                )
    return said + [
        f"“{quote}” of quotes.py is nowhere on the page" for quote in QUOTES if quote not in found
    ]
