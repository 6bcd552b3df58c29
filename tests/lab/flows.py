#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Bytes that a host of a lab sends, by the address they are sent to: counted
# from frames that leave eth0 until standard input ends, for at most 120 s.
# "counting" is printed once it has begun, then a line "ADDRESS BYTES" each.
# Exit status 1 if frames were missed.
import collections
import select
import socket
import struct
import sys
import time

LIMIT_S = 120
ALL, IPV4 = 3, 0x0800  # only what takes all sees frames that leave
OUTGOING = 4
SOL_PACKET, PACKET_STATISTICS = 263, 6
SO_RCVBUFFORCE = 33
BUFFER = 64 << 20
IP_DST = 14 + 16  # behind the Ethernet header


def main():
    frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                           socket.htons(ALL))
    frames.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    frames.bind(("eth0", ALL))
    frames.setblocking(False)
    head = bytearray(IP_DST + 4)
    sent = collections.Counter()
    deadline = time.monotonic() + LIMIT_S
    print("counting", flush=True)
    while time.monotonic() < deadline:
        ready = select.select([frames, sys.stdin], [], [], 1)[0]
        if ready == [sys.stdin]:
            break
        if frames not in ready:
            continue
        size, _, _, address = frames.recvmsg_into([head], 0, socket.MSG_TRUNC)
        if address[1] == IPV4 and address[2] == OUTGOING:
            sent[socket.inet_ntoa(bytes(head[IP_DST:]))] += size
    _, missed = struct.unpack(
        "II", frames.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    for address, size in sorted(sent.items()):
        print(address, size)
    if missed:
        sys.exit(f"{missed} frames were missed")


main()
