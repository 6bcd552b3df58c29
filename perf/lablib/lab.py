# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# A lab that is up: finding it, going into one of its hosts, its links and
# their counters, ending it.
import json
import os
import select
import signal
import socket
import struct
import sys

from . import fabric, linux
from .fabric import LabError

STOP_WAIT_MS = 30000


def peer_pid(name):
    """Process that listens, 0 if none does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        if probe.connect_ex(fabric.socket_name(name)) != 0:
            return 0
        cred = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        pid, uid, _ = struct.unpack("3i", cred)
    if uid != 0:
        raise LabError(f"what calls itself lab {name} is not root's")
    return pid


class Lab:
    """Seen from outside through /proc of the process that holds it, from
    inside through the files it has put there."""

    def __init__(self, name):
        self.inside = os.path.exists(fabric.HOME + "/info.json")
        if self.inside:
            self.pid = 0
            home = fabric.HOME
        else:
            fabric.check_rights()
            self.pid = peer_pid(name)
            if self.pid == 0:
                raise LabError(f"no lab named {name} is up: "
                               f"'lab -l {name} up N RATE' makes one")
            home = f"/proc/{self.pid}/root{fabric.HOME}"
        self.proc = home + "/proc"
        with open(home + "/info.json") as file:
            info = json.load(file)
        self.name = info["name"]
        self.hosts = info["hosts"]
        self.rate = info["rate"]

    def check_host(self, host):
        if not 0 <= host < len(self.hosts):
            raise LabError(f"{host} is not a host: lab {self.name} has 0 to "
                           f"{len(self.hosts) - 1}")

    def enter(self, pid, kinds):
        """This process goes where a process of the lab is."""
        folder = os.getcwd()
        fds = [os.open(f"{self.proc}/{pid}/ns/{kind}",
                       os.O_RDONLY | os.O_CLOEXEC) for kind in kinds]
        for fd in fds:
            linux.setns(fd)
            os.close(fd)
        if "mnt" in kinds:
            os.chdir(folder)

    def enter_host(self, host):
        self.enter(self.hosts[host], ("net", "uts", "ipc", "mnt"))

    def environ(self):
        """With temporary files where they end with the host."""
        return {**os.environ, "TMPDIR": fabric.HOST_TMP}

    def settle(self, host):
        """From inside: this process becomes a session on a host. The
        scheduler shares the cores among sessions, so that one for each host
        is what makes hosts equal."""
        self.enter_host(host)
        linux.mount_proc()
        os.setsid()

    def execute(self, host, command):
        """In place of this process, which settles on the host."""
        self.settle(host)
        return linux.execute(command, self.environ())

    def contain(self, host, body):
        """Runs body on a host, and returns when none of its processes is
        left."""
        def enter():
            self.enter_host(host)
            self.inside = True
            self.proc = fabric.HOME + "/proc"

        self.enter(1, ("pid",))
        return linux.contain(enter, body)

    def set_link(self, host, is_up):
        """The host's cable, at the switch's end."""
        self.check_host(host)
        child = linux.fork(lambda: self._set_link(host, is_up))
        if linux.wait(child) != 0:
            raise LabError(f"the link of host {host} could not be changed")

    def _set_link(self, host, is_up):
        self.enter(1, ("net",))
        fabric.run_tool("ip", "link", "set", f"p{host}",
                        "up" if is_up else "down")
        return 0

    def bytes(self):
        """(received, sent) by each host's eth0, as the kernel counts."""
        counts = []
        for pid in self.hosts:
            with open(f"{self.proc}/{pid}/net/dev") as file:
                for line in file:
                    device, _, rest = line.partition(":")
                    if device.strip() == "eth0":
                        fields = rest.split()
                        counts.append((int(fields[0]), int(fields[8])))
        return counts

    def goodput(self):
        """Bytes of payload a second that a link can carry; 0: any."""
        return self.rate / 8 * fabric.GOODPUT


def stop(name):
    """Returns whether there was one, when all its processes are gone."""
    pid = peer_pid(name)
    if pid == 0:
        return False
    try:
        fd = os.pidfd_open(pid)
        if peer_pid(name) == pid:  # not another one that has its number
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if not poll.poll(STOP_WAIT_MS):
            raise LabError(f"process {pid} of lab {name} does not end")
        os.close(fd)
    except ProcessLookupError:
        pass
    return True


def rsh(args):
    """Stands for ssh or rsh: [option...] HOST COMMAND..., inside the lab."""
    args = list(args)
    while args and args[0].startswith("-"):
        args = args[2:] if args[0] in ("-l", "-p", "-o") else args[1:]
    if len(args) < 2:
        print("lab: rsh: expected HOST COMMAND", file=sys.stderr)
        return 2
    name = args[0].rpartition("@")[2]
    lab = Lab("")
    for host in range(len(lab.hosts)):
        if name in (fabric.host_name(host), fabric.address(host)):
            command = ["/bin/sh", "-c", " ".join(args[1:])]
            return linux.wait(linux.fork(
                lambda: lab.execute(host, command)))
    print(f"lab: rsh: '{name}' is not a host", file=sys.stderr)
    return 1
