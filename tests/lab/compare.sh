#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# perf/compare for a moment, on this host and in a lab: that both sides are
# measured and figures agree with each other, not what they are.
. "$srcdir/tests/lab/lab_lib.sh"
[ -x "$builddir/perf/compare_mpi" ] || skip "this build is without Open MPI"
for package in PMIX JANSSON; do
    grep -q "^#define HCE_HAVE_$package 1" "$builddir/config.h" ||
        skip "this build is without $package"
done
for tool in mpirun.openmpi gnuplot; do
    command -v $tool >/dev/null || skip "there is no $tool"
done
# What Open MPI never frees is not looked at.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
compare=("$srcdir/perf/compare" --builddir "$builddir" --pairs 2
    --milliseconds 20)

# figures PROGRAM: an assertion about the report r and the one size s in it.
figures() {
    python3 -c "
import json, sys
r = json.load(open('$TMPDIR/a.json'))
s, = r['sizes']
c = s['contenders']
assert ($1), s" || fail "not so: $1"
}

run "${compare[@]}" --ranks 2 --sizes 64K hce:malloc mpi:ob1 mpi:ucx:ring \
    --json "$TMPDIR/a.json" --plot "$TMPDIR/a.png"
[ "$status" -eq 0 ] || fail "exit status $status"
figures "list(c) == ['hce:malloc', 'mpi:ob1', 'mpi:ucx:ring']"
figures "all(x['single_us']['num'] == 2 for x in c.values())"
figures "all(x['busbw_gbps'] > 0 and x['percent_of_ideal'] is None
    for x in c.values())"
figures "[(p['ours'], p['theirs']) for p in s['pairs']] ==
    [('hce:malloc', 'mpi:ob1'), ('hce:malloc', 'mpi:ucx:ring')]"
figures "s['best_openmpi'] == min(list(c)[1:],
    key=lambda name: c[name]['single_us']['median'])"
figures "r['machine']['cores'] and r['machine']['openmpi']"
[ "$(head -c 4 "$TMPDIR/a.png" | tail -c 3)" = PNG ] || fail "no picture"

bad 1 'hce_perf' "${compare[@]}" --ranks 2 --sizes 1K \
    hce:malloc:nonexistent mpi:ob1

# Where there is no lab all of this has been worth something, too.
lab_up 1 none
"$lab" down
run "${compare[@]}" --nodes 2 --ranks 1 --rate 500mbit --sizes 1M \
    hce:window mpi:ob1 --json "$TMPDIR/a.json"
[ "$status" -eq 0 ] || fail "exit status $status"
figures "all(x['least_bytes_a_node_and_call'] == 1048576
    and 1 <= x['bytes_a_node_and_call'] / 1048576 < 1.08
    for x in c.values())"
figures "all(len(s['interfaces']) == 2 for x in c.values()
    for s in x['samples'])"
figures "all(0 < x['percent_of_ideal'] for x in c.values())"

echo "== killed, it takes its lab along"
"${compare[@]}" --nodes 2 --ranks 1 --rate 500mbit --sizes 4M --pairs 100 \
    hce:window mpi:ob1 >"$out" 2>"$err" &
pid=$!
until_seen '@hce-lab/compare.'$pid'$' /proc/net/unix
kill -KILL $pid
wait $pid 2>/dev/null
for _ in {1..100}; do
    grep -q "@hce-lab/compare.$pid\$" /proc/net/unix || break
    sleep 0.1
done
! grep -q "@hce-lab/compare.$pid\$" /proc/net/unix || fail "its lab is left"
rm "$TMPDIR/a.json" "$TMPDIR/a.png"
nothing_left "$LIBHCE_LAB"
finish
