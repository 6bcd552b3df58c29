# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# What is compared, by name:
#   hce:BUFFERS[:PATH]     hce_perf with --buffers and --path
#   mpi:PML[:ALGORITHM]    Open MPI with a layer for messages, ob1 or ucx, and
#                          with an algorithm in place of its own choice
from typing import NamedTuple

BUFFERS = ("window", "alloc", "malloc")
PMLS = ("ob1", "ucx")

# Open MPI's name of the collective and numbers of its algorithms, 4.1.
ALGORITHMS = {
    "all_gather": ("allgather", {
        "linear": 1, "bruck": 2, "recursive_doubling": 3, "ring": 4,
        "neighbor": 5}),
    "all_reduce": ("allreduce", {
        "linear": 1, "nonoverlapping": 2, "recursive_doubling": 3,
        "ring": 4, "segmented_ring": 5, "rabenseifner": 6}),
    "reduce_scatter": ("reduce_scatter_block", {
        "linear": 1, "recursive_doubling": 2, "recursive_halving": 3,
        "butterfly": 4}),
    "broadcast": ("bcast", {
        "linear": 1, "chain": 2, "pipeline": 3, "split_binary": 4,
        "binary": 5, "binomial": 6, "knomial": 7, "scatter_allgather": 8,
        "scatter_allgather_ring": 9}),
}

# Best known for large messages.
LARGE = {
    "all_gather": "ring",
    "all_reduce": "segmented_ring",
    "reduce_scatter": "recursive_halving",
    "broadcast": "pipeline",
}

# Without them results over shaped links wander.
SEND_BUFFER = 256 * 1024
RECEIVE_BUFFER = 512 * 1024


class Contender(NamedTuple):
    name: str
    is_hce: bool
    args: list     # of hce_perf
    environ: dict


def default_names(collective):
    large = LARGE[collective]
    return ["hce:window", "hce:malloc", "mpi:ob1", "mpi:ucx",
            f"mpi:ob1:{large}", f"mpi:ucx:{large}"]


def _hce(name, parts):
    if parts[0] not in BUFFERS or len(parts) > 2:
        raise ValueError(f"'{name}': expected hce:BUFFERS[:PATH], BUFFERS "
                         f"one of {', '.join(BUFFERS)}")
    args = ["--buffers", parts[0]]
    if len(parts) == 2:
        args += ["--path", parts[1]]
    return Contender(name, True, args, {})


def _mpi(name, parts, collective):
    if parts[0] not in PMLS or len(parts) > 2:
        raise ValueError(f"'{name}': expected mpi:PML[:ALGORITHM], PML one "
                         f"of {', '.join(PMLS)}")
    environ = {"OMPI_MCA_pml": parts[0]}
    if parts[0] == "ucx":
        environ.update({
            # It offers itself where there is no RDMA device, too.
            "OMPI_MCA_opal_common_ucx_tls": "any",
            "OMPI_MCA_opal_common_ucx_devices": "any",
            "UCX_TCP_SNDBUF": str(SEND_BUFFER),
            "UCX_TCP_RCVBUF": str(RECEIVE_BUFFER),
        })
    else:
        environ.update({
            "OMPI_MCA_btl_tcp_sndbuf": str(SEND_BUFFER),
            "OMPI_MCA_btl_tcp_rcvbuf": str(RECEIVE_BUFFER),
        })
    if len(parts) == 2:
        mpi_name, numbers = ALGORITHMS[collective]
        if parts[1] not in numbers:
            raise ValueError(f"'{name}': expected an algorithm of "
                             f"{', '.join(numbers)}")
        environ.update({
            "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
            f"OMPI_MCA_coll_tuned_{mpi_name}_algorithm":
                str(numbers[parts[1]]),
        })
    return Contender(name, False, [], environ)


def parse(name, collective):
    kind, *parts = name.split(":")
    if kind == "hce" and parts:
        return _hce(name, parts)
    if kind == "mpi" and parts:
        return _mpi(name, parts, collective)
    raise ValueError(f"'{name}': expected hce:... or mpi:...")
