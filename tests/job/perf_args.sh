#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# hce_perf refuses wrong arguments with status 2 and a message that names the
# flag, what was given and what was expected, before any rank starts.
. "$srcdir/tests/job/perf_lib.sh"

# wrong PATTERN ARG...
wrong() {
    local pattern=$1
    shift

    bad 64 "$pattern" "$perf" "$@"
    [ ! -s "$out" ] || fail "something was run"
}

wrong 'collective is missing: expected all_gather'
wrong "'alltoall' is unknown: expected one of all_gather" alltoall
wrong "--path: 'ring' is unknown: expected auto, each, direct" \
    all_reduce --path ring
wrong "'x' is one argument too many" all_gather x
wrong "^hce_perf: -b: '8Q' is not a size: expected bytes such as" \
    all_gather -b 8Q
wrong "-b: '' is not a size" all_gather -b ''
wrong "-b: '-1' is not a size" all_gather -b -1
wrong "-e: '99999999T' is not a size.*at most" all_gather -e 99999999T
wrong '-b: 2097152 is more than -e: expected at most 1048576' \
    all_gather -b 2M -e 1M
wrong '-i: 0 never reaches -e: expected at least 1' \
    all_gather -b 1 -e 2 -i 0
wrong '-i: 1 makes 1073741824 rows: expected at most 65536' \
    all_gather -b 1 -e 1G -i 1
wrong "-f: '0' is not acceptable: expected a whole number from 1 to" \
    all_gather -f 0
wrong "-n: '0' is not acceptable: expected a whole number from 1 to" \
    all_gather -n 0
wrong "-n: '20x' is not acceptable" all_gather -n 20x
wrong "-w: '-1' is not acceptable" all_gather -w -1
wrong "-c: 'yes' is not acceptable" all_gather -c yes
wrong "-a: '4' is not acceptable: expected a whole number from 0 to 3" \
    all_gather -a 4
wrong "-d: 'flot' is unknown: expected one of all, int8.*float" \
    all_gather -d flot
wrong "-o: 'xor' is unknown: expected one of sum, prod" all_gather -o xor
wrong "-r: 'first' is not acceptable" all_gather -r first
wrong '-r: 4 is not a rank: expected less than 4' \
    all_gather --ranks 4 -r 4
wrong "--ranks: '0' is not acceptable: expected a whole number from 1" \
    all_gather --ranks 0
wrong "--nodes: '3,1' does not fit 6 ranks: .*less than the ranks" \
    all_gather --ranks 6 --nodes 3,1
wrong "--nodes: '4' does not fit 6 ranks: .*divide" \
    all_gather --ranks 6 --nodes 4
wrong "--nodes: 'two' does not fit" all_gather --ranks 6 --nodes two
wrong "--map: 'ring' is unknown: expected one of block, cyclic" \
    all_gather --map ring
wrong "--path: 'rign' is unknown: expected auto, each, direct" \
    all_gather --path rign
wrong "--contexts: '17' is not acceptable: .* from 1 to 16" \
    all_gather --contexts 17
wrong "--width: 'wide' is not a size" all_gather --width wide
wrong "--comms: '0' is not acceptable" all_gather --comms 0
wrong "--buffers: 'heap' is unknown: expected one of window, alloc, malloc" \
    all_gather --buffers heap
wrong "--offset: '4096' is not acceptable: .* to 4095" \
    all_gather --offset 4096
wrong "--plot: 'a.gif': .*expected a name that ends in .png or .svg" \
    all_gather --plot a.gif
wrong "--plot: '/nonexistent/a.svg' cannot be written: No such file" \
    all_gather --ranks 2 --plot /nonexistent/a.svg
if grep -q '^#define HCE_HAVE_JANSSON 1' "$builddir/config.h"; then
    wrong "--json: '/nonexistent/a' cannot be written: No such file" \
        all_gather --ranks 2 --json /nonexistent/a
    wrong "--calibrate: '/nonexistent/a' cannot be written: No such file" \
        all_gather --ranks 2 --calibrate /nonexistent/a
    wrong '--calibrate: there are no figures of all_reduce' \
        all_reduce --calibrate x
fi
wrong "--delay: '3' is incomplete: expected RANK:VALUE" \
    all_gather --delay 3
wrong "--kill: 'x' is not acceptable" all_gather --kill x:1
wrong "--mismatch: 'colour' is unknown: expected one of count, type, path" \
    all_gather --mismatch 1:colour
wrong '--kill: 3 is not a rank: expected less than 3' \
    all_gather --ranks 3 --kill 3:1
wrong "unrecognized option '--rang" all_gather --rang=4
wrong "requires an argument" all_gather -b

run "$perf" --version
grep -qE '^hce_perf [0-9.]+, libhce [0-9.]+$' "$out" || fail "no version"
run "$perf" --help
grep -q 'mpirun.openmpi -n 4 hce_perf all_gather' "$out" || fail "no example"
run "$perf" -h
grep -q 'Examples:' "$out" || fail "-h is not --help"

# A launcher's ranks are processes.
bad 64 '--threads: .* expected --ranks as well' \
    env RANK=0 WORLD_SIZE=2 "$perf" all_gather --threads
finish
