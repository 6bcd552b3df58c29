#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Whom a host sends to on a path, by the library's statistics and by the
# frames that leave the host: on rings to two hosts, on direct to all.
. "$srcdir/tests/lab/lab_lib.sh"
grep -q '^#define HCE_HAVE_JANSSON 1' "$builddir/config.h" ||
    skip "this build is without jansson"
lab_up 4 none
bytes=1048576 iters=5
calls=$((2 * (iters + 2))) # to warm up and to check, out of and in place
json=$TMPDIR/neighbours.json
flows=$TMPDIR/neighbours.flows

# sent_by_statistics, sent_by_frames: bytes host 0 sent to hosts 1 2 3.
sent_by_statistics() {
    python3 -c 'import json, sys
print(*json.load(open(sys.argv[1]))["ranks"][0]["put_bytes_to"][1:])' "$json"
}

sent_by_frames() {
    local host

    for host in 1 2 3; do
        sed -n "s/^198\.18\.77\.$((10 + host)) //p" "$flows" | grep . || echo 0
    done
}

# about WHAT GOT WANT: more by at most 8 % and the little that control takes.
about() {
    echo "$1: $2 bytes, planned $3"
    [ "$2" -ge "$3" ] && [ "$2" -le $(($3 * 108 / 100 + 400000)) ] ||
        fail "$1: $2 bytes, planned $3"
}

# path PATH TO1 TO2 TO3: half slices that host 0 sends to hosts 1, 2 and 3.
path() {
    local path=$1 counter want host=1
    shift

    : >"$flows"
    coproc COUNTER { exec "$lab" exec 0 "$srcdir/tests/lab/flows.py" >"$flows"; }
    counter=$COUNTER_PID
    for _ in {1..100}; do
        grep -q counting "$flows" && break
        sleep 0.1
    done
    run "$lab" run 4 1 env "$perf" all_gather --path "$path" --dirs 2 \
        --per-rank \
        -b $bytes -e $bytes -n $iters --json "$json"
    is_good 1 4 "$path"
    exec {COUNTER[1]}>&-
    wait $counter || fail "$path: frames were not counted"
    read -ra statistics < <(sent_by_statistics)
    readarray -t frames < <(sent_by_frames)
    for want; do
        want=$((want * calls * bytes / 2))
        about "$path, statistics, to host $host" "${statistics[host - 1]}" $want
        about "$path, frames, to host $host" "${frames[host - 1]}" $want
        host=$((host + 1))
    done
}

path ring 3 0 3
path ring_short 3 0 3
path direct 2 2 2
rm -f "$flows" "$json"
"$lab" down || fail "down"
nothing_left "$LIBHCE_LAB"
finish
