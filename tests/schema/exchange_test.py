# SPDX-License-Identifier: Apache-2.0
"""What `prepost export` writes, as others read it: COMMAND.

GraphML is read by NetworkX and compared with the plan, op for op and edge for edge. MSCCL's XML is
held to what its loader demands and then played: every gpu's thread blocks side by side, each in
order, with queues between gpus that hold a single chunk, where a deadlock shows, and without limit,
where what is sent too early does. In the end every gpu must have every chunk, sent only after it
was there; of other collectives what it wants, with each contribution once."""
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

import networkx

COMMAND = sys.argv[1]
SCHEDULES = [
    "sequential",
    "chain",
    "binomial_tree",
    "binomial_pipeline",
    "circulant",
    "two_tree",
    "scatter_allgather",
]
ATTRIBUTES = {
    "algo": {
        "name",
        "proto",
        "nchannels",
        "nchunksperloop",
        "ngpus",
        "coll",
        "inplace",
        "outofplace",
        "minBytes",
        "maxBytes",
    },
    "gpu": {"id", "i_chunks", "o_chunks", "s_chunks"},
    "tb": {"id", "send", "recv", "chan"},
    "step": {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"},
}


def expected_graph(plan):
    """The ops by name with their attributes, and the edges of the plan."""
    nodes, edges, ends = {}, [], {}
    sizes = [
        min(
            plan["message"]["block_bytes"],
            plan["message"]["bytes"] - i * plan["message"]["block_bytes"],
        )
        for i in range(plan["message"]["blocks"])
    ]
    for program in plan["programs"]:
        for i, op in enumerate(program["ops"]):
            name = f"{program['node']}.{i}"
            channel = plan["channels"][op["channel"]]
            nodes[name] = {
                "node": program["node"],
                "op": i,
                "kind": op["op"] + (" credit" if op["block"] is None else ""),
                "peer": channel["to" if op["op"] == "send" else "from"],
                "lane": channel["lane"],
                "round": op["round"],
            }
            if op["block"] is not None:
                nodes[name] |= {"block": op["block"], "bytes": sizes[op["block"]]}
            if "grants" in op:
                nodes[name]["grants"] = op["grants"]
            edges += [(f"{program['node']}.{before}", name, "after") for before in op["after"]]
            ends.setdefault(op["channel"], {"send": [], "recv": []})[op["op"]].append(name)
    for end in ends.values():
        edges += [(a, b, "message") for a, b in zip(end["send"], end["recv"], strict=True)]
        for kind in end.values():
            edges += [(a, b, "channel") for a, b in zip(kind, kind[1:])]
    return nodes, sorted(edges)


def check_graphml(path, plan):
    graph = networkx.read_graphml(path)
    nodes, edges = expected_graph(plan)
    assert graph.is_directed()
    assert dict(graph.nodes(data=True)) == nodes, path
    assert sorted(graph.edges(data="order")) == edges, path
    assert graph.graph["blocks"] == plan["message"]["blocks"]


def check_form(algo):
    assert algo.get("coll") in {
        "broadcast",
        "reduce",
        "allreduce",
        "reducescatter",
        "allgather",
        "gather",
        "scatter",
        "alltoall",
    }
    of_all_ranks = algo.get("coll") in {
        "reducescatter",
        "allgather",
        "alltoall",
    }  # NCCL multiplies a rank's count by the ranks
    largest = max(int(gpu.get(chunks)) for gpu in algo for chunks in ("i_chunks", "o_chunks"))
    assert (
        int(algo.get("nchunksperloop"))
        * (len(algo) if algo.get("coll") in {"gather", "scatter"} else 1)
        == largest
    )
    assert int(algo.get("minBytes")) == int(algo.get("maxBytes")) and (
        not of_all_ranks or int(algo.get("minBytes")) % len(algo) == 0
    )
    for element in algo.iter():
        assert set(element.attrib) == ATTRIBUTES[element.tag], element.attrib
    for gpu in algo:
        assert [int(tb.get("id")) for tb in gpu] == list(range(len(gpu)))
        for tb in gpu:
            assert [int(step.get("s")) for step in tb] == list(range(len(tb))) and len(tb) <= 256
            for i, step in enumerate(tb):
                waited_for = any(
                    other.get("depid") == tb.get("id") and int(other.get("deps")) == i
                    for block in gpu
                    for other in block
                )
                assert step.get("hasdep") == str(
                    int(waited_for)
                ), "what others wait for is marked, and only that"
                if step.get("type") == "nop":
                    assert (
                        tb[i + 1].get("depid") != "-1"
                    ), "the last of several dependences is the step's own"


def play(algo, plan, capacity):
    """Chunk numbers stand for chunks. The only way to get stuck is a deadlock."""
    blocks = plan["message"]["blocks"]
    gpus = {int(gpu.get("id")): gpu for gpu in algo}
    assert sorted(gpus) == list(range(plan["nodes"]))
    memory = {gpu: {"i": [None] * blocks, "o": [None] * blocks} for gpu in gpus}
    memory[plan["root"]]["i"] = list(range(blocks))
    queues, done = {}, {}
    # Sends go whenever they may, receives only when nothing else does:
    # what is sent too early shows.
    while any(
        sweep(gpus, kinds, memory, queues, done, capacity)
        for kinds in [("s", "cpy", "nop"), ("r",)]
    ):
        pass
    for gpu, element in gpus.items():
        assert all(
            done.get((gpu, int(tb.get("id"))), 0) == len(tb) for tb in element
        ), f"gpu {gpu} is stuck"
        assert memory[gpu]["o"] == list(range(blocks)), f"gpu {gpu} has {memory[gpu]['o']}"


def sweep(gpus, kinds, memory, queues, done, capacity):
    """One step, if there is one of these kinds that can be done, for every thread block."""
    moved = False
    for gpu, element in gpus.items():
        for tb in element:
            key = gpu, int(tb.get("id"))
            position = done.get(key, 0)
            if position < len(tb) and tb[position].get("type") in kinds:
                if step_of(gpu, tb, tb[position], memory[gpu], queues, done, capacity):
                    done[key] = position + 1
                    moved = True
    return moved


def step_of(gpu, tb, step, memory, queues, done, capacity):
    """Whether the step could be done now."""
    if step.get("depid") != "-1" and done.get((gpu, int(step.get("depid"))), 0) <= int(
        step.get("deps")
    ):
        return False
    source, target = int(step.get("srcoff")), int(step.get("dstoff"))
    if step.get("type") == "s":
        queue = queues.setdefault((gpu, int(tb.get("send"))), [])
        if len(queue) >= capacity:
            return False
        assert memory[step.get("srcbuf")][source] == source, "sent before it was there"
        queue.append(source)
    elif step.get("type") == "r":
        queue = queues.get((int(tb.get("recv")), gpu), [])
        if not queue:
            return False
        assert (
            memory[step.get("dstbuf")][target] is None and queue[0] == target
        ), "a chunk comes once, to its place"
        memory[step.get("dstbuf")][target] = queue.pop(0)
    elif step.get("type") == "cpy":
        memory[step.get("dstbuf")][target] = memory[step.get("srcbuf")][source]
    return True


def parts_of(collective, nodes, node, root):
    """The parts that a node contributes to, and those that it wants."""
    every, own, at_root = list(range(nodes)), [node], node == root
    return {
        "reduce": ([0], [0] if at_root else []),
        "allreduce": ([0], [0]),
        "reduce_scatter": (every, own),
        "allgather": (own, every),
        "gather": (own, every if at_root else []),
        "scatter": (every if at_root else [], own),
        "alltoall": ([node * nodes + i for i in every], [i * nodes + node for i in every]),
    }[collective]


def play_collective(algo, plan, capacity):
    """A value is a block and whose contributions are in it: each must be in it once."""
    nodes, root, message = plan["nodes"], plan.get("root", 0), plan["message"]
    per_part = message["blocks"] // message.get("parts", 1)
    ends = [
        [
            [part * per_part + i for part in parts for i in range(per_part)]
            for parts in parts_of(plan["collective"], nodes, node, root)
        ]
        for node in range(nodes)
    ]
    memory, queues, done = {}, {}, {}
    for gpu in algo:
        number, blocks = int(gpu.get("id")), ends[int(gpu.get("id"))]
        assert [int(gpu.get("i_chunks")), int(gpu.get("o_chunks"))] == [
            len(blocks[0]),
            len(blocks[1]),
        ]
        memory[number] = {
            "i": [(block, frozenset([number])) for block in blocks[0]],
            "o": [None] * len(blocks[1]),
            "s": [None] * int(gpu.get("s_chunks")),
        }

    def step_of_collective(gpu, tb, step):
        if step.get("depid") != "-1" and done.get((gpu, int(step.get("depid"))), 0) <= int(
            step.get("deps")
        ):
            return False
        source, target = (memory[gpu][step.get(buffer)] for buffer in ("srcbuf", "dstbuf"))
        at, to = int(step.get("srcoff")), int(step.get("dstoff"))
        if step.get("type") == "s":
            queue = queues.setdefault((gpu, int(tb.get("send"))), [])
            if len(queue) >= capacity:
                return False
            assert source[at] is not None, "sent before it was there"
            queue.append(source[at])
        elif step.get("type") in ("r", "rrc"):
            queue = queues.get((int(tb.get("recv")), gpu), [])
            if not queue:
                return False
            block, ranks = queue.pop(0)
            if step.get("type") == "rrc":
                assert (
                    source[at][0] == block and not source[at][1] & ranks
                ), "combined with another block, or counted twice"
                ranks |= source[at][1]
            target[to] = (block, ranks)
        elif step.get("type") == "cpy":
            target[to] = source[at]
        return True

    def sweep_all(kinds):
        moved = False
        for gpu in algo:
            for tb in gpu:
                key = int(gpu.get("id")), int(tb.get("id"))
                position = done.get(key, 0)
                if (
                    position < len(tb)
                    and tb[position].get("type") in kinds
                    and step_of_collective(key[0], tb, tb[position])
                ):
                    done[key] = position + 1
                    moved = True
        return moved

    while any(sweep_all(kinds) for kinds in [("s", "cpy", "nop"), ("r", "rrc")]):
        pass
    contributors = {}
    for node, (inputs, _) in enumerate(ends):
        for block in inputs:
            contributors.setdefault(block, set()).add(node)
    for gpu in algo:
        number = int(gpu.get("id"))
        assert all(
            done.get((number, int(tb.get("id"))), 0) == len(tb) for tb in gpu
        ), f"gpu {number} is stuck"
        assert memory[number]["o"] == [
            (block, frozenset(contributors[block])) for block in ends[number][1]
        ], number


def check_collectives(folder):
    count = 0
    for collective, schedules in {
        "reduce": ["chain", "binomial_tree", "circulant"],
        "allreduce": ["ring", "halving", "doubling", "chain"],
        "reduce_scatter": ["ring", "halving"],
        "allgather": ["ring", "halving"],
        "gather": ["direct", "binomial"],
        "scatter": ["direct", "binomial"],
        "alltoall": ["pairwise", "bruck"],
    }.items():
        for schedule in schedules:
            for nodes in [2, 4] if schedule == "doubling" else [1, 2, 3, 5]:
                for ready in ["auto", "window=3"]:
                    command = [
                        COMMAND,
                        "compile",
                        "--collective",
                        collective,
                        "--algorithm",
                        schedule,
                        "--nodes",
                        str(nodes),
                        "--message-bytes",
                        "40",
                        "--block-bytes",
                        "20",
                        "--ready",
                        ready,
                        "-o",
                        folder / "plan.json",
                    ]
                    if collective in ("reduce", "gather", "scatter"):
                        command += ["--root", str(nodes // 2)]
                    if collective in ("reduce", "allreduce", "reduce_scatter"):
                        command += ["--combine", "sum:float32"]
                    subprocess.run(command, check=True)
                    subprocess.run(
                        [COMMAND, "export", folder / "plan.json", "-o", folder / "plan.xml"],
                        check=True,
                        stderr=subprocess.DEVNULL,
                    )
                    algo = ElementTree.parse(folder / "plan.xml").getroot()
                    check_form(algo)
                    plan = json.loads((folder / "plan.json").read_text())
                    play_collective(algo, plan, capacity=1)
                    play_collective(algo, plan, capacity=1000)
                    count += 1
    return count


def main():
    count = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for schedule in SCHEDULES:
            for nodes, blocks in [(1, 2), (2, 1), (4, 3), (7, 5), (9, 4)]:
                for ready in ["auto", "channel", "window=2"]:
                    subprocess.run(
                        [
                            COMMAND,
                            "compile",
                            "--nodes",
                            str(nodes),
                            "--message-bytes",
                            str(blocks * 10 - 3),
                            "--block-bytes",
                            "10",
                            "--algorithm",
                            schedule,
                            "--ready",
                            ready,
                            "--root",
                            str(nodes // 2),
                            "-o",
                            folder / "plan.json",
                        ],
                        check=True,
                    )
                    plan = json.loads((folder / "plan.json").read_text())
                    for output in ["plan.graphml", "plan.xml"]:
                        subprocess.run(
                            [COMMAND, "export", folder / "plan.json", "-o", folder / output],
                            check=True,
                            stderr=subprocess.DEVNULL,
                        )
                    check_graphml(folder / "plan.graphml", plan)
                    algo = ElementTree.parse(folder / "plan.xml").getroot()
                    check_form(algo)
                    play(algo, plan, capacity=1)
                    play(algo, plan, capacity=plan["message"]["blocks"])
                    count += 1
        count += check_collectives(folder)
    print(f"{count} plans exported, read and played")
    assert count > 200


main()
