# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# One run of one contender at one size, by mpirun for all alike, on this host
# or in a lab that ends with this process.
import json
import os
import re
import signal
import subprocess
from typing import NamedTuple

from lablib import lab, linux

LIMIT_S = 300


class JobError(Exception):
    pass


class Sample(NamedTuple):
    single_us: float  # a call on its own: median of the slowest rank's times
    mean_us: float    # of calls that follow each other
    calls: int
    cpu_sec: float    # of all ranks, during those
    received: float   # by all hosts' interfaces, during those
    interfaces: list  # (received, sent) of each host's, the whole job


class Place:
    """Where jobs run."""

    def __init__(self, shape, rate, program):
        self.shape = shape
        self.name = None
        self.goodput = 0.0
        self.program = program
        if rate is not None:
            self.name = f"compare.{os.getpid()}"
            subprocess.run([program, "-l", self.name, "up",
                            str(shape.nodes), rate, "--owner",
                            str(os.getpid())],
                           check=True, stdout=subprocess.DEVNULL)
            self.goodput = lab.Lab(self.name).goodput()

    def close(self):
        if self.name is not None:
            lab.stop(self.name)

    def command(self):
        if self.name is not None:
            return [self.program, "-l", self.name, "run",
                    str(self.shape.nodes), str(self.shape.ranks_per_node),
                    "mpirun"]
        return ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none",
                "-n", str(self.shape.ranks)]

    def bytes(self):
        return [] if self.name is None else lab.Lab(self.name).bytes()


def environ_of(contender):
    """What the user has set goes to all contenders."""
    return {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        **contender.environ,
    }


def run_command(command, environ):
    """Its output; all that it started has ended."""
    process = subprocess.Popen(
        command, env=environ, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: linux.die_with_parent(signal.SIGTERM))
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    except BaseException as error:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise JobError(f"over {LIMIT_S} s: {' '.join(command)}") from None
        raise
    if process.returncode != 0:
        raise JobError(f"exit status {process.returncode}: "
                       f"{' '.join(command)}\n{out[-2000:]}{err[-2000:]}")
    return out


def hce_cell(what, command, environ):
    """What hce_perf writes among the lines of its table. There is no file
    that could be left behind."""
    out = run_command([*command, what.collective, "--per-rank",
                       "-b", str(what.size), "-e", str(what.size),
                       "--milliseconds", str(what.milliseconds), "--single",
                       "--out-of-place", "-a", "3", *what.contender.args,
                       "--json", "/dev/stdout"], environ)
    match = re.search(r"^{$", out, re.MULTILINE)
    if not match:
        raise JobError(f"no JSON in: {out}")
    result, _ = json.JSONDecoder().raw_decode(out, match.start())
    return result["results"][0]["out_of_place"]


def mpi_cell(what, command, environ):
    """What compare_mpi prints, maybe among warnings."""
    out = run_command([*command, what.collective, str(what.size),
                       str(what.milliseconds)], environ)
    for line in out.splitlines():
        if line.startswith("{"):
            return json.loads(line)
    raise JobError(f"no result in: {out}")


class What(NamedTuple):
    """What is run."""
    contender: object
    collective: str
    size: int
    milliseconds: int


def run(place, builddir, what):
    environ = environ_of(what.contender)
    before = place.bytes()
    if what.contender.is_hce:
        cell = hce_cell(what, [*place.command(),
                               builddir + "/perf/hce_perf"], environ)
    else:
        cell = mpi_cell(what, [*place.command(),
                               builddir + "/perf/compare_mpi"], environ)
    after = place.bytes()
    if cell["wrong"] != 0:
        raise JobError(f"{what.contender.name}: {cell['wrong']} wrong "
                       f"elements at {what.size} bytes")
    return Sample(cell["single_us"], cell["time_us"], cell["calls"],
                  cell["cpu_sec"], cell["net_received"],
                  [(b[0] - a[0], b[1] - a[1])
                   for a, b in zip(before, after)])
