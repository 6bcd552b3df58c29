#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Large outputs, to 1 GiB: 4 ranks need 5 GiB in all. Skips what the machine
# has no memory for.
. "$srcdir/tests/job/perf_lib.sh"
available=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
if [ "$available" -lt 2 ]; then
    echo "skipped: $available GiB of memory are available, 2 are needed"
    exit 77
fi
largest=256M
[ "$available" -lt 8 ] || largest=1G

for ways in --threads ''; do
    good 1 4 "$perf" all_gather $ways --ranks 4 --nodes 2 -b $largest \
        -e $largest -n 2 --check-stats
done
good 1 4 "$perf" all_gather --ranks 4 --nodes 3,1 -b $largest -e $largest \
    -n 2 --buffers malloc --offset 3 -d int8
good 1 4 "$perf" all_gather --ranks 4 --nodes 4 --path flat -b 256M \
    -e 256M -n 2 --check-stats
good 1 16 "$perf" all_gather --ranks 16 --nodes 4 --map cyclic -b 64M \
    -e 64M -n 2 --check-stats
good 14 5 "$perf" all_gather --ranks 5 --nodes 2,3 -d int8 -b 1 -e 64M \
    -f 4 -n 5 --comms 2
finish
