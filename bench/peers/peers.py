# SPDX-License-Identifier: Apache-2.0
"""What else brings a message to all nodes: how bench/network and bench/host run it. A peer that is not installed is left out.

    openmpi            MPI_Bcast as Open MPI decides
    openmpi:A:S        its algorithm A (pipeline, chain, binary, binomial, scatter_allgather_ring, ...) with segments of S
    mpich              MPI_Bcast of MPICH
    udpcast            udp-sender and udp-receiver, a multicast by the network itself
"""
import json
import pathlib
import re
import shutil
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
OPENMPI_ALGORITHMS = {"linear": 1, "chain": 2, "pipeline": 3, "split_binary": 4, "binary": 5, "binomial": 6, "knomial": 7,
                      "scatter_allgather": 8, "scatter_allgather_ring": 9}
# For a sweep: each tuned algorithm that pipelines, with segments of 8 to 128 KiB, and the others as they are.
OPENMPI_SWEEP = ["openmpi"] + [f"openmpi:{a}:{s}" for a in ["chain", "pipeline", "split_binary", "binary", "binomial"]
                               for s in ["8KiB", "16KiB", "32KiB", "64KiB", "128KiB"]] + [
                                   f"openmpi:{a}:0" for a in ["scatter_allgather", "scatter_allgather_ring"]]


def size_of(text):
    number, unit = re.fullmatch(r"([0-9]+)(B|KiB|MiB|GiB)?", text).groups()
    return int(number) * {None: 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]


def names_of(text):
    """A list of peers, with commas; `openmpi*` is OPENMPI_SWEEP."""
    names = []
    for name in filter(None, text.split(",")):
        names += OPENMPI_SWEEP if name == "openmpi*" else [name]
    return names


def is_there(name):
    return all(shutil.which(tool) for tool in {"openmpi": ["mpicc.openmpi", "mpirun.openmpi"], "mpich": ["mpicc.mpich", "mpirun.mpich"],
                                               "udpcast": ["udp-sender", "udp-receiver"]}[name.split(":")[0]])


def mpi_program(name, folder):
    program = pathlib.Path(folder) / f"mpi_bcast.{name}"
    if not program.exists():
        subprocess.run([f"mpicc.{name}", "-O2", HERE / "mpi_bcast.c", "-o", program], check=True)
    return program


def tuning_of(name):
    """Open MPI's flags."""
    if ":" not in name:
        return []
    _, algorithm, segment = name.split(":")
    return ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_bcast_algorithm", str(OPENMPI_ALGORITHMS[algorithm]),
            "--mca", "coll_tuned_bcast_algorithm_segmentsize", str(size_of(segment))]


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def mpi_arguments(sizes, repeat):
    return [word for size in sizes for word in [str(size_of(size)), str(repeat)]]


def run_on_host(name, nodes, transport, sizes, repeat, folder):
    """Lines as session_bench's, of processes of this machine; transport: shm or tcp."""
    program = mpi_program(name.split(":")[0], folder)
    if name.startswith("openmpi"):
        btl = {"shm": "vader,self", "tcp": "tcp,self"}[transport]
        words = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(nodes), "--mca", "btl", btl, "--mca", "pml", "ob1",
                 "--mca", "mpi_yield_when_idle", "1", *tuning_of(name), program]
    else:
        words = ["mpirun.mpich", "-n", str(nodes), program]
    done = subprocess.run([*words, *mpi_arguments(sizes, repeat)], capture_output=True, text=True, check=True, timeout=1200)
    return json_lines(done.stdout)


def run_in_namespaces(name, nodes, address_of, prefix, sizes, repeat, folder):
    """The same between network namespaces: node i is address_of(i) in namespace prefix + str(i)."""
    if name == "udpcast":
        return [run_udpcast(nodes, prefix, size, repeat, folder) for size in sizes]
    family = name.split(":")[0]
    program = mpi_program(family, folder)
    agent = pathlib.Path(folder) / "agent"
    agent.write_text('#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nnode=$1; shift\n'
                     f'i=$((${{node##*.}} - 1))\nexec ip netns exec {prefix}$i unshare -u bash -c "hostname {prefix}$i; $*"\n')
    agent.chmod(0o755)
    network = ".".join(address_of(0).split(".")[:3]) + ".0/24"
    hosts = ",".join(address_of(i) + (":1" if family == "openmpi" else "") for i in range(nodes))
    if family == "openmpi":
        words = ["mpirun.openmpi", "--allow-run-as-root", "-n", str(nodes), "--mca", "plm_rsh_agent", agent, "-H", hosts, "--mca", "btl",
                 "tcp,self", "--mca", "pml", "ob1", "--mca", "btl_tcp_if_include", network, "--mca", "oob_tcp_if_include", network,
                 "--mca", "mpi_yield_when_idle", "1", *tuning_of(name), program]
    else:
        words = ["mpirun.mpich", "-genv", "MPIR_CVAR_NOLOCAL", "1", "-genv", "FI_PROVIDER", "tcp;ofi_rxm", "-launcher", "ssh", "-launcher-exec", agent, "-hosts", hosts, "-n", str(nodes), "-iface", "eth0", program]
    start = ["ip", "netns", "exec", f"{prefix}0", "unshare", "-u", "bash", "-c", f'hostname {address_of(0)}; exec "$@"', "-"]
    done = subprocess.run([*start, *words, *mpi_arguments(sizes, repeat)], capture_output=True, text=True, timeout=1200)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {done.stderr[-500:]}")
    return json_lines(done.stdout)


def run_udpcast(nodes, prefix, size, repeat, folder):
    """Whole files from and to memory; the time is that of the sender, from its start to its end, with all receivers there."""
    source = pathlib.Path("/dev/shm") / f"udpcast-{size}"
    source.write_bytes(b"x" * size_of(size))
    seconds = []
    try:
        for _ in range(repeat):
            receivers = [subprocess.Popen(["ip", "netns", "exec", f"{prefix}{i}", "udp-receiver", "--nokbd", "--interface", "eth0", "--file",
                                           "/dev/null"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for i in range(1, nodes)]
            time.sleep(0.3)
            start = time.monotonic()
            subprocess.run(["ip", "netns", "exec", f"{prefix}0", "udp-sender", "--nokbd", "--interface", "eth0", "--file", source,
                            "--min-receivers", str(nodes - 1), "--full-duplex"], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=600)
            for receiver in receivers:
                receiver.wait(timeout=60)
            seconds.append(time.monotonic() - start)
    finally:
        source.unlink()
    return {"bytes": size_of(size), "members": nodes, "seconds": seconds}
