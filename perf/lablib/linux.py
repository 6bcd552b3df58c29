# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Calls of the kernel that Python's library has not, and processes that end
# with the one that started them, however that one ends.
import ctypes
import os
import signal
import sys

NEWNS = 0x00020000
NEWUTS = 0x04000000
NEWIPC = 0x08000000
NEWPID = 0x20000000
NEWNET = 0x40000000

MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """What this machine or user cannot do at all."""


def _call(what, function, *args):
    if function(*args) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def unshare(flags):
    _call("unshare", _libc.unshare, flags)


def setns(fd):
    _call("setns", _libc.setns, fd, 0)


def mount(source, target, kind=None, flags=0, data=None):
    def text(value):
        return None if value is None else os.fsencode(value)

    _call(f"mount {target}", _libc.mount, text(source), text(target),
          text(kind), ctypes.c_ulong(flags), text(data))


def die_with_parent(signum):
    """signum at the end of the process that started this one; 0: none."""
    _call("prctl", _libc.prctl, PR_SET_PDEATHSIG, ctypes.c_ulong(signum),
          0, 0, 0)


def fork(body):
    """A child that runs body and ends with what it returns."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid > 0:
        return pid
    status = 1
    try:
        status = body()
    except Exception as error:
        print(f"lab: {error}", file=sys.stderr)
    finally:
        # Also after KeyboardInterrupt: a child never runs its parent's code.
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)


def exit_status(status):
    """As a shell counts: 128 and the number of a signal that ended it."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def wait(pid):
    return exit_status(os.waitpid(pid, 0)[1])


def wait_all(pids):
    """The first status that is not 0, in the order in which they end."""
    left, result = set(pids), 0
    while left:
        pid, status = os.wait()
        if pid in left:
            left.remove(pid)
            result = result or exit_status(status)
    return result


def execute(command, environ):
    """In place of this process, with signals as a shell would leave them."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE,
                   signal.SIGCHLD):
        signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        os.execvpe(command[0], command, environ)
    except OSError as error:
        print(f"lab: cannot run {command[0]}: {error.strerror}",
              file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126


def is_root_mounted():
    """Only then its propagation can be changed; mountinfo shows what this
    process can reach, by its own root."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        return any(line.split()[4] == "/" for line in mounts)


def mount_proc():
    """/proc of the own pid namespace, for this process and its children."""
    unshare(NEWNS)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc")


def _first_process(body):
    """Process 1 of a pid namespace: all others in it end with this one."""
    die_with_parent(signal.SIGKILL)
    mount_proc()
    child = fork(body)
    while True:
        pid, status = os.wait()
        if pid == child:
            return exit_status(status)


def _keeper(enter, body):
    """Starts the first process and, told to end, waits until all have."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    die_with_parent(signal.SIGTERM)
    enter()
    unshare(NEWPID)
    first = fork(lambda: _first_process(body))
    signal.signal(signal.SIGTERM,
                  lambda *_: os.kill(first, signal.SIGKILL))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
    return wait(first)


class _Stopped(Exception):
    pass


def contain(enter, body):
    """Runs body in a pid namespace of its own, so that no process it starts
    is left when it has ended or this process has, be it by SIGKILL. enter is
    called before, to go where it shall run."""
    def stop(signum, _frame):
        raise _Stopped(signum)

    keeper = fork(lambda: _keeper(enter, body))
    try:
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, stop)
        return wait(keeper)
    except _Stopped as stopped:
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)
        os.kill(keeper, signal.SIGTERM)
        wait(keeper)
        return 128 + stopped.args[0]
