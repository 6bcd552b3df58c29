# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Building a lab. One process, the first of a pid namespace, holds the switch
# and, through a child a host, the hosts; nothing has a name outside, no
# mount, link or file is made there, and all of it ends with that process.
# An abstract socket is how others find the process: the kernel gives a name
# once, and takes it back at the process's end.
import errno
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time

from . import linux

HOME = "/run/hce-lab"      # on a file system of the lab's own
HOST_TMP = "/run/hce-host"  # on one of the host's own
SUBNET = "198.18.77"  # reserved for benchmarks; no route leads out
FIRST_ADDRESS = 10
MAX_HOSTS = 64
NAME_WAIT_S = 5

# 1448 of 1514 bytes are payload: TCP with time stamps over Ethernet.
GOODPUT = 1448 / 1514
# A queue of so much time, and a bucket that a full segment fits into.
QUEUE_MS = 20
MIN_BURST = 128 * 1024
BURST_S = 0.002


class LabError(Exception):
    pass


def address(host):
    return f"{SUBNET}.{FIRST_ADDRESS + host}"


def host_name(host):
    return f"hn{host}"


def socket_name(name):
    return f"\0hce-lab/{name}"


def parse_rate(text):
    """Bits a second of '500mbit'; 0 for 'none'."""
    if text == "none":
        return 0
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg])bit", text.lower())
    if not match or float(match[1]) == 0:
        raise LabError(f"'{text}' is not a rate: expected such as 500mbit, "
                       "1gbit, or none")
    return int(float(match[1]) * {"k": 1e3, "m": 1e6, "g": 1e9}[match[2]])


def run_tool(tool, *args, text=None):
    result = subprocess.run([tool, *args], input=text, text=True,
                            capture_output=True)
    if result.returncode != 0:
        raise LabError(f"{tool} {' '.join(args)}: {result.stderr.strip()}")


def ip_batch(*lines):
    run_tool("ip", "-batch", "-", text="\n".join(lines) + "\n")


def shape(device, rate):
    if rate == 0:
        return
    burst = max(MIN_BURST, int(rate / 8 * BURST_S))
    run_tool("tc", "qdisc", "add", "dev", device, "root", "tbf",
             "rate", f"{rate}bit", "burst", str(burst),
             "latency", f"{QUEUE_MS}ms")


def close_all_but(keep):
    """Descriptors that a caller's shell left open are no business of ours."""
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2 and fd not in keep:
            try:
                os.close(fd)
            except OSError:
                pass  # that of the listing itself


def detach_output():
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def mount_tmp(path):
    os.makedirs(path, exist_ok=True)
    linux.mount("tmpfs", path, "tmpfs", 0, "mode=1777")


def no_ipv6():
    """Its neighbour discovery would be among the bytes counted."""
    for scope in ("all", "default"):
        try:
            with open(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6",
                      "w") as file:
                file.write("1")
        except FileNotFoundError:
            pass


def hold_host(host, rate, channel):
    """Life of the process that holds one host."""
    os.setsid()
    linux.unshare(linux.NEWNS | linux.NEWNET | linux.NEWUTS | linux.NEWIPC)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    socket.sethostname(host_name(host))
    mount_tmp(HOST_TMP)
    if os.path.isdir("/dev/shm"):
        mount_tmp("/dev/shm")
    no_ipv6()
    channel.send(b"r")
    if not channel.recv(1):
        return 1
    ip_batch("link set lo up",
             f"addr add {address(host)}/24 dev eth0", "link set eth0 up")
    shape("eth0", rate)
    channel.send(b"r")
    channel.close()
    detach_output()
    while True:
        signal.pause()


def start_host(host, rate):
    """The process that holds a host, and the channel to it."""
    ours, theirs = socket.socketpair()

    def body():
        ours.close()
        return hold_host(host, rate, theirs)

    pid = linux.fork(body)
    theirs.close()
    if not ours.recv(1):
        raise LabError(f"host {host} did not come up")
    return pid, ours


def connect_host(host, rate, pid, channel):
    ip_batch(f"link add p{host} type veth peer name eth0 netns {pid}",
             f"link set p{host} master br0 up")
    shape(f"p{host}", rate)
    channel.send(b"g")
    if not channel.recv(1):
        raise LabError(f"host {host} could not be connected")
    channel.close()


def prepare_home(num):
    linux.unshare(linux.NEWNS | linux.NEWNET | linux.NEWUTS | linux.NEWIPC)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("proc", "/proc", "proc")
    linux.mount("tmpfs", "/run", "tmpfs", 0, "mode=755")
    os.makedirs(HOME + "/proc")
    linux.mount("/proc", HOME + "/proc", None, linux.MS_BIND)
    with open(HOME + "/hosts", "w") as file:
        file.write("127.0.0.1 localhost\n")
        for host in range(num):
            file.write(f"{address(host)} {host_name(host)}\n")
    if os.path.exists("/etc/hosts"):
        linux.mount(HOME + "/hosts", "/etc/hosts", None, linux.MS_BIND)
    socket.sethostname("switch")
    no_ipv6()


def build(name, num, rate, program):
    """Inside the process that is to hold it all."""
    prepare_home(num)
    ip_batch("link set lo up",
             "link add br0 type bridge forward_delay 0 stp_state 0 "
             "mcast_snooping 0",  # it would report groups to all hosts
             "link set br0 up")
    hosts = []
    for host in range(num):
        pid, channel = start_host(host, rate)
        connect_host(host, rate, pid, channel)
        hosts.append(pid)
    with open(HOME + "/rsh", "w") as file:
        file.write(f'#!/bin/sh\nexec "{sys.executable}" "{program}" _rsh '
                   '"$@"\n')
    os.chmod(HOME + "/rsh", 0o755)
    with open(HOME + "/info.json", "w") as file:
        json.dump({"name": name, "hosts": hosts, "rate": rate}, file)


def serve(listener, owner):
    """Until the owner ends, or for ever. A connection's only use is to find
    out the process."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    waiting = select.poll()
    waiting.register(listener, select.POLLIN)
    if owner is not None:
        waiting.register(owner, select.POLLIN)
    while True:
        for fd, _ in waiting.poll():
            if fd == owner:
                return 0
            listener.accept()[0].close()


def hold_lab(params, listener, channel, owner):
    """Life of the process that holds the lab. Until the one that starts it
    has taken over what is ready, both end together."""
    linux.die_with_parent(signal.SIGKILL)
    os.setsid()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    os.chdir("/")
    keep = {listener.fileno(), channel.fileno(), owner}
    close_all_but(keep)
    try:
        build(**params)
    except (LabError, OSError) as error:
        channel.send(f"error: {error}".encode())
        return 1
    listener.listen(64)
    channel.send(b"ready")
    if not channel.recv(16):
        return 1
    linux.die_with_parent(0)
    detach_output()
    channel.send(b"detached")
    channel.close()
    return serve(listener, owner)


def is_listening(name):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(socket_name(name)) == 0


def take_name(name):
    """The socket that makes the name this lab's."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    deadline = time.monotonic() + NAME_WAIT_S
    while True:
        try:
            listener.bind(socket_name(name))
            return listener
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        if is_listening(name):
            raise LabError(f"a lab named {name} is up: end it by "
                           f"'lab -l {name} down', or take another name")
        if time.monotonic() > deadline:
            raise LabError(f"a lab named {name} is neither up nor down")
        time.sleep(0.02)  # it is on its way up or down


def check_rights():
    if os.geteuid() != 0:
        raise linux.Unavailable(
            "needs root: hosts are namespaces, joined by links")
    for tool in ("ip", "tc"):
        if not any(os.access(os.path.join(folder, tool), os.X_OK)
                   for folder in os.environ["PATH"].split(":")):
            raise linux.Unavailable(f"needs '{tool}' of package iproute2")
    if not linux.is_root_mounted():
        raise linux.Unavailable("needs a root directory that is a mount: a "
                                "chroot's is not")


def start(name, num, rate, program, owner=None):
    """Returns when the lab is up. It lasts until stopped, or as long as the
    process owner."""
    check_rights()
    if not 1 <= num <= MAX_HOSTS:
        raise LabError(f"{num} hosts: expected 1 to {MAX_HOSTS}")
    params = {"name": name, "num": num, "rate": rate, "program": program}
    listener = take_name(name)
    ours, theirs = socket.socketpair()
    owner_fd = os.pidfd_open(owner) if owner is not None else None
    try:
        linux.unshare(linux.NEWPID)
    except PermissionError:
        raise linux.Unavailable("needs the right to make namespaces "
                                "(CAP_SYS_ADMIN)") from None

    def body():
        ours.close()
        return hold_lab(params, listener, theirs, owner_fd)

    pid = linux.fork(body)
    theirs.close()
    listener.close()
    answer = ours.recv(4096).decode()
    if answer == "ready":
        ours.send(b"taken")
        answer = ours.recv(16).decode()
    if answer != "detached":
        linux.wait(pid)
        raise LabError(answer.removeprefix("error: ") or "it did not start")
