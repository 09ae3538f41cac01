# SPDX-License-Identifier: Apache-2.0
"""What else brings a message to all nodes, or calls a collective:
how bench/network and bench/host run it.

    openmpi            MPI_Bcast, MPI_Allreduce, ... as Open MPI decides
    openmpi:A:S        its algorithm A (pipeline, chain, binary_tree, binomial,
                       scatter_allgather_ring, ...) with segments of S; of other collectives: ring,
                       recursive_doubling, pairwise, ...
    openmpi*           openmpi and a sweep of its algorithms
    mpich              the same of MPICH
    gloo               gloo's, as PyTorch has them for CPUs
    udpcast            udp-sender and udp-receiver, a multicast by the network itself
    uftp               uftp and uftpd, the same
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from members import json_lines, run_members

HERE = pathlib.Path(__file__).resolve().parent
# For a sweep: each tuned algorithm that pipelines, with segments of 8 to 128 KiB, and the others as
# they are. None: a broadcast.
OPENMPI_SWEEPS = {
    None: [
        f"{a}:{s}"
        for a in ["chain", "pipeline", "split_binary_tree", "binary_tree", "binomial"]
        for s in ["8KiB", "16KiB", "32KiB", "64KiB", "128KiB"]
    ]
    + ["scatter_allgather:0", "scatter_allgather_ring:0"],
    "allreduce": [
        "nonoverlapping:0",
        "recursive_doubling:0",
        "ring:0",
        "segmented_ring:64KiB",
        "segmented_ring:1MiB",
        "rabenseifner:0",
    ],
    "allgather": ["linear:0", "bruck:0", "recursive_doubling:0", "ring:0", "neighbor:0"],
    "reduce_scatter": [
        "basic_linear:0",
        "recursive_doubling:0",
        "recursive_halving:0",
        "butterfly:0",
    ],
    "alltoall": ["linear:0", "pairwise:0", "modified_bruck:0", "linear_sync:0"],
    "barrier": ["linear:0", "double_ring:0", "recursive_doubling:0", "bruck:0", "tree:0"],
}
# What its parameters call them, where that is another word.
OPENMPI_WORDS = {None: "bcast", "broadcast": "bcast", "reduce_scatter": "reduce_scatter_block"}


def size_of(text):
    number, unit = re.fullmatch(r"([0-9]+)(B|KiB|MiB|GiB)?", text).groups()
    return int(number) * {None: 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]


def names_of(text, collective=None):
    """A list of peers, with commas. Exits if one is not installed:
    a table without it looks complete."""
    names = []
    for name in filter(None, text.split(",")):
        names += (
            ["openmpi"] + [f"openmpi:{it}" for it in OPENMPI_SWEEPS.get(collective, [])]
            if name == "openmpi*"
            else [name]
        )
    missing = sorted({name.split(":")[0] for name in names if not is_there(name)})
    if missing:
        sys.exit(f"{sys.argv[0]}: {', '.join(missing)}: not installed (scripts/deps --peers)")
    return names


def is_there(name):
    if name == "gloo":
        return pathlib.Path("/usr/include/gloo").is_dir()
    return all(
        shutil.which(tool)
        for tool in {
            "openmpi": ["mpicc.openmpi", "mpirun.openmpi"],
            "mpich": ["mpicc.mpich", "mpirun.mpich"],
            "udpcast": ["udp-sender", "udp-receiver"],
            "uftp": ["uftp", "uftpd"],
        }[name.split(":")[0]]
    )


def gloo_program(folder, source):
    program = pathlib.Path(folder) / f"gloo_{source}"
    if not program.exists():
        subprocess.run(
            [
                "g++",
                "-O2",
                "-std=c++17",
                HERE / f"gloo_{source}.cc",
                "-o",
                program,
                "-lgloo",
                "-lpthread",
            ],
            check=True,
        )
    return program


def run_gloo(nodes, address_of, start_of, sizes, repeat, folder, collective, burst=1):
    """`start_of(i)`: what stands before the command of rank i."""
    if collective == "reduce_scatter":  # which it does not have
        return []
    program = gloo_program(folder, source_of(collective))
    with tempfile.TemporaryDirectory() as store:
        return run_members(
            lambda i: [
                *start_of(i),
                program,
                i,
                nodes,
                address_of(i),
                store,
                *mpi_arguments(sizes, repeat, collective, burst),
            ],
            nodes,
        )


def source_of(collective):
    """Of the programs that measure peers: `collective` is one of bench/calls_bench, or None, a
    broadcast as session_bench has it."""
    return "bcast" if collective is None else "calls"


def mpi_program(name, folder, source):
    program = pathlib.Path(folder) / f"mpi_{source}.{name}"
    if not program.exists():
        subprocess.run(
            [f"mpicc.{name}", "-O2", HERE / f"mpi_{source}.c", "-o", program], check=True
        )
    return program


def tuning_of(name, collective):
    """Open MPI's flags."""
    if ":" not in name:
        return []
    _, algorithm, segment = name.split(":")
    parameter = f"coll_tuned_{OPENMPI_WORDS.get(collective, collective)}_algorithm"
    return [
        "--mca",
        "coll_tuned_use_dynamic_rules",
        "1",
        "--mca",
        parameter,
        algorithm,
        *(
            ["--mca", f"{parameter}_segmentsize", str(size_of(segment))]
            if size_of(segment) > 0
            else []
        ),
    ]


def mpi_arguments(sizes, repeat, collective, burst=1):
    return [str(burst) if collective is None else collective] + [
        word for size in sizes for word in [str(size_of(size)), str(repeat)]
    ]


def run_on_host(name, nodes, transport, sizes, repeat, folder, collective=None, burst=1):
    """Lines as session_bench's, of processes of this machine; transport: shm or tcp. `burst`: so
    many broadcasts one right after the other, whose time is shared out."""
    if name == "gloo":  # has TCP alone
        return (
            run_gloo(
                nodes,
                lambda i: f"127.0.0.{i + 1}",
                lambda i: [],
                sizes,
                repeat,
                folder,
                collective,
                burst,
            )
            if transport == "tcp"
            else []
        )
    program = mpi_program(name.split(":")[0], folder, source_of(collective))
    if name.startswith("openmpi"):
        btl = {"shm": "vader,self", "tcp": "tcp,self"}[transport]
        words = [
            "mpirun.openmpi",
            "--allow-run-as-root",
            "--oversubscribe",
            "-n",
            str(nodes),
            "--mca",
            "btl",
            btl,
            "--mca",
            "pml",
            "ob1",
            "--mca",
            "mpi_yield_when_idle",
            "1",
            *tuning_of(name, collective),
            program,
        ]
    else:
        words = ["mpirun.mpich", "-n", str(nodes), program]
    done = subprocess.run(
        [*words, *mpi_arguments(sizes, repeat, collective, burst)],
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    )
    return json_lines(done.stdout)


def run_in_namespaces(
    name,
    nodes,
    address_of,
    prefix,
    sizes,
    repeat,
    folder,
    rate,
    space_of=None,
    network=None,
    collective=None,
):
    """The same between network namespaces: node i is address_of(i) in space_of(i), or prefix +
    str(i). `rate`: bytes/s of the slowest, for those that do not find it out. `network`: of all
    addresses, if they differ in more than the last number.
    """
    space_of = space_of or (lambda i: f"{prefix}{i}")
    if name in ("udpcast", "uftp"):
        return [run_files(name, nodes, prefix, size, repeat, rate) for size in sizes]
    if name == "gloo":
        return run_gloo(
            nodes,
            address_of,
            lambda i: ["ip", "netns", "exec", f"{prefix}{i}"],
            sizes,
            repeat,
            folder,
            collective,
        )
    family = name.split(":")[0]
    program = mpi_program(family, folder, source_of(collective))
    agent = pathlib.Path(folder) / "agent"
    spaces = " ".join(f"[{address_of(i)}]={space_of(i)}" for i in range(nodes))
    agent.write_text(
        f"#!/bin/bash\ndeclare -A spaces=({spaces})\n"
        "while [[ $1 == -* ]]; do shift; done\nspace=${spaces[$1]}; shift\n"
        'exec ip netns exec "$space" unshare -u bash -c "hostname $space; $*"\n'
    )
    agent.chmod(0o755)
    network = network or ".".join(address_of(0).split(".")[:3]) + ".0/24"
    hosts = ",".join(address_of(i) + (":1" if family == "openmpi" else "") for i in range(nodes))
    if family == "openmpi":
        words = [
            "mpirun.openmpi",
            "--allow-run-as-root",
            "-n",
            str(nodes),
            "--mca",
            "plm_rsh_agent",
            agent,
            "-H",
            hosts,
            "--mca",
            "btl",
            "tcp,self",
            "--mca",
            "pml",
            "ob1",
            "--mca",
            "btl_tcp_if_include",
            network,
            "--mca",
            "oob_tcp_if_include",
            network,
            "--mca",
            "mpi_yield_when_idle",
            "1",
            *tuning_of(name, collective),
            program,
        ]
    else:
        words = [
            "mpirun.mpich",
            "-genv",
            "MPIR_CVAR_NOLOCAL",
            "1",
            "-genv",
            "FI_PROVIDER",
            "tcp;ofi_rxm",
            "-launcher",
            "ssh",
            "-launcher-exec",
            agent,
            "-hosts",
            hosts,
            "-n",
            str(nodes),
            "-iface",
            "eth0",
            program,
        ]
    start = [
        "ip",
        "netns",
        "exec",
        space_of(0),
        "unshare",
        "-u",
        "bash",
        "-c",
        f'hostname {address_of(0)}; exec "$@"',
        "-",
    ]
    done = subprocess.run(
        [*start, *words, *mpi_arguments(sizes, repeat, collective)],
        capture_output=True,
        text=True,
        timeout=1200,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {done.stderr[-500:]}")
    return json_lines(done.stdout)


def run_files(name, nodes, prefix, size, repeat, rate):
    """Whole files from and to memory; the time is that of the sender, from its start to its end.
    udpcast's receivers are there before it begins, and uftp looks for its own, which takes it some
    seconds."""
    seconds = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        source = pathlib.Path(memory) / "message"
        source.write_bytes(b"x" * size_of(size))

        def inside(i, *words, **how):
            return subprocess.Popen(
                ["ip", "netns", "exec", f"{prefix}{i}", *words],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                **how,
            )

        def receiver(i):
            if name == "udpcast":
                return inside(
                    i, "udp-receiver", "--nokbd", "--interface", "eth0", "--file", "/dev/null"
                )
            folder = pathlib.Path(memory) / str(i)
            folder.mkdir(exist_ok=True)
            return inside(i, "uftpd", "-d", "-I", "eth0", "-D", folder)

        if name == "udpcast":
            send = [
                "udp-sender",
                "--nokbd",
                "--interface",
                "eth0",
                "--file",
                source,
                "--min-receivers",
                str(nodes - 1),
                "--full-duplex",
            ]
        else:
            send = [
                "uftp",
                "-I",
                "eth0",
                "-R",
                str(int(rate * 8 / 1000 * 0.97)),
                "-b",
                "8800",
                source,
            ]
        for _ in range(repeat):
            receivers = [receiver(i) for i in range(1, nodes)]
            try:
                time.sleep(0.3)
                start = time.monotonic()
                if inside(0, *send).wait(timeout=600) != 0:
                    raise RuntimeError(f"{name} failed")
                seconds.append(time.monotonic() - start)
                copies = (
                    [pathlib.Path(memory) / str(i) / "message" for i in range(1, nodes)]
                    if name == "uftp"
                    else []
                )
                if any(
                    not copy.exists() or copy.stat().st_size != size_of(size) for copy in copies
                ):
                    raise RuntimeError(f"{name}: a receiver lacks the file")
            finally:
                for each in receivers:
                    if name == "uftp":
                        each.terminate()
                    each.wait(timeout=60)
    return {"bytes": size_of(size), "members": nodes, "seconds": seconds}
