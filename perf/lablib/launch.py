# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Jobs: R ranks on each of N hosts. What is below runs on host 0, in a pid
# namespace of the job's own; each host's ranks are a session of their own,
# since the scheduler shares the cores among sessions.
import os
import shutil
from typing import NamedTuple

from . import fabric, linux, slurm
from .fabric import LabError

MASTER_PORT = "29500"


class Job(NamedTuple):
    hosts: int
    ranks: int  # a host
    command: list


def run_ranks(lab, job, host):
    """The ranks of one host."""
    lab.settle(host)
    pids = []
    for local in range(job.ranks):
        environ = {
            **lab.environ(),
            "RANK": str(host * job.ranks + local),
            "WORLD_SIZE": str(job.hosts * job.ranks),
            "LOCAL_RANK": str(local),
            "LOCAL_WORLD_SIZE": str(job.ranks),
            "GROUP_RANK": str(host),
            "MASTER_ADDR": fabric.address(0),
            "MASTER_PORT": os.environ.get("MASTER_PORT", MASTER_PORT),
        }
        pids.append(linux.fork(
            lambda: linux.execute(job.command, environ)))
    return linux.wait_all(pids)


def run_env(lab, job):
    def host_body(host):
        return lambda: run_ranks(lab, job, host)

    return linux.wait_all([linux.fork(host_body(host))
                           for host in range(job.hosts)])


def run_mpirun(lab, job):
    """Parameters of Open MPI (OMPI_MCA_...) that are set count."""
    hosts = ",".join(f"{fabric.host_name(host)}:{job.ranks}"
                     for host in range(job.hosts))
    environ = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_plm": "rsh",
        "OMPI_MCA_plm_rsh_agent": fabric.HOME + "/rsh",
        "OMPI_MCA_oob_tcp_if_include": "eth0",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
        **lab.environ(),
    }
    os.setsid()
    return linux.execute(
        ["mpirun.openmpi", "--host", hosts, "-n",
         str(job.hosts * job.ranks), "--map-by", "slot", "--bind-to",
         "none", *job.command], environ)


def run_srun(lab, job):
    return slurm.run(lab, job)


LAUNCHERS = {"env": run_env, "mpirun": run_mpirun, "srun": run_srun}
PROGRAMS = {"mpirun": ("mpirun.openmpi",), "srun": slurm.PROGRAMS}


def run(lab, job):
    """job.command may begin with a launcher's name."""
    name = "env"
    if job.command[0] in LAUNCHERS:
        name = job.command[0]
        job = job._replace(command=job.command[1:])
    if not job.command:
        raise LabError(f"{name}: the command is missing")
    if job.hosts < 1 or job.ranks < 1:
        raise LabError("expected at least one host and one rank")
    lab.check_host(job.hosts - 1)
    for program in PROGRAMS.get(name, ()):
        if shutil.which(program) is None:
            raise linux.Unavailable(f"{name} needs {program}")
    return lab.contain(0, lambda: LAUNCHERS[name](lab, job))
