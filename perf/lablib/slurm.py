# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# A Slurm for one job: munged and slurmctld on host 0, a slurmd on each host,
# as root, with everything they write in the lab's own file system.
import os
import shutil
import subprocess
import sys
import tempfile
import time

from . import fabric, linux

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
START_WAIT_S = 30

# What is not said has no plug-in that would want cgroups, a data base, or a
# user of its own.
CONF = """ClusterName=lab
SlurmctldHost=hn0({address})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
StateSaveLocation={home}/state
TmpFS={home}/tmp.%n
SlurmdSpoolDir={home}/spool.%n
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.%n.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
TreeWidth=64
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
{nodes}
PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeAddr={address} CPUs={cpus} State=UNKNOWN"


def write_files(job, home):
    nodes = "\n".join(
        NODE.format(name=fabric.host_name(host),
                    address=fabric.address(host), cpus=job.ranks)
        for host in range(job.hosts))
    for host in range(job.hosts):
        for kind in ("spool", "tmp"):
            os.mkdir(f"{home}/{kind}.{fabric.host_name(host)}")
    os.mkdir(home + "/state")
    with open(home + "/slurm.conf", "w") as file:
        file.write(CONF.format(address=fabric.address(0), home=home,
                               nodes=nodes))
    with open(home + "/cgroup.conf", "w") as file:
        file.write("CgroupPlugin=cgroup/v1\n")
    fd = os.open(home + "/munge.key", os.O_WRONLY | os.O_CREAT, 0o400)
    os.write(fd, os.urandom(1024))
    os.close(fd)


def start_daemon(home, name, command, enter=os.setsid):
    """In the foreground and a session of its own; what it says is kept."""
    def body():
        enter()
        fd = os.open(f"{home}/{name}.out", os.O_WRONLY | os.O_CREAT, 0o644)
        os.dup2(fd, 1)
        os.dup2(fd, 2)
        return linux.execute(command, os.environ)

    linux.fork(body)


def wait_until(home, what, is_done):
    deadline = time.monotonic() + START_WAIT_S
    while not is_done():
        if time.monotonic() > deadline:
            show_logs(home)
            raise fabric.LabError(f"Slurm did not start: {what}")
        time.sleep(0.05)


def show_logs(home):
    for name in sorted(os.listdir(home)):
        if name.endswith((".log", ".out")):
            with open(f"{home}/{name}") as file:
                for line in file.readlines()[-10:]:
                    print(f"lab: {name}: {line.rstrip()}", file=sys.stderr)


def start_munge(home):
    start_daemon(home, "munged", [
        "munged", "--foreground", "--force",
        f"--key-file={home}/munge.key", f"--socket={home}/munge.socket",
        f"--pid-file={home}/munged.pid", f"--log-file={home}/munged.log",
        f"--seed-file={home}/munged.seed"])
    wait_until(home, "munged",
               lambda: os.path.exists(home + "/munge.socket"))


def start_slurm(lab, job, home):
    def enter(host):
        def go():
            lab.settle(host)
        return go

    conf = home + "/slurm.conf"
    start_daemon(home, "slurmctld", ["slurmctld", "-D", "-f", conf])
    for host in range(job.hosts):
        name = fabric.host_name(host)
        start_daemon(home, f"slurmd.{name}",
                     ["slurmd", "-D", "-f", conf, "-N", name], enter(host))

    def all_idle():
        result = subprocess.run(["sinfo", "-h", "-t", "idle", "-o", "%D"],
                                capture_output=True, text=True)
        return sum(map(int, result.stdout.split())) == job.hosts

    wait_until(home, "not all nodes are idle", all_idle)


def run(lab, job):
    """On host 0. The daemons end with the job's pid namespace."""
    home = tempfile.mkdtemp(dir=fabric.HOME, prefix="slurm.")
    os.chmod(home, 0o755)
    os.environ.update(lab.environ(), SLURM_CONF=home + "/slurm.conf")
    write_files(job, home)
    start_munge(home)
    start_slurm(lab, job, home)

    def body():
        os.setsid()
        return linux.execute(
            ["srun", "--mpi=pmix", "-N", str(job.hosts),
             f"--ntasks-per-node={job.ranks}", *job.command], os.environ)

    status = linux.wait(linux.fork(body))
    if status != 0:
        show_logs(home)
    shutil.rmtree(home, ignore_errors=True)
    return status
