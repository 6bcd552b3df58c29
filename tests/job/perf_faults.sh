#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# hce_perf notices what goes wrong, says it, exits with a status other than 0,
# and leaves no process behind.
. "$srcdir/tests/job/perf_lib.sh"
small=(-b 4K -e 4K -n 5)

pids() {
    sed -n 's/^# rank [0-9]* pid \([0-9]*\) .*/\1/p' "$out"
}

verdict() { # PATTERN
    grep -qE "^# Verdict: FAILED, .*$1" "$out" ||
        fail "no verdict FAILED that matches '$1'"
}

# The checks of data see one flipped bit, wherever it is.
for ways in --threads ''; do
    for rank in 0 2; do
        run "$perf" all_gather $ways --ranks 3 --nodes 2,1 \
            --corrupt $rank "${small[@]}"
        [ "$status" -eq 1 ] || fail "exit status $status, expected 1"
        verdict '4 wrong in [0-9]+ checked values'
        grep -q '^# Out of bounds values : 4 FAILED' "$out" ||
            fail "not counted"
    done
done

# Calls that differ are an error, in either way of running ranks.
for what in count type path; do
    for ways in --threads ''; do
        bad 1 'hce_allgather' "$perf" all_gather $ways --ranks 3 \
            --nodes 2,1 --path direct --mismatch 1:$what "${small[@]}"
        verdict 'rank 1 makes allgather call [0-9]+ \('
        verdict 'rank [02] makes allgather call [0-9]+ \('
    done
done

# A rank that is killed: the parent says which, the others name it, too.
for rank in 0 1 3; do
    bad 1 "rank $rank \(pid [0-9]+\) was killed by signal 9" \
        "$perf" all_gather --ranks 4 --nodes 2 --kill $rank:4 "${small[@]}"
    verdict "rank $rank"
    other=$(((rank + 1) % 4))
    grep -qE "rank $other: .*rank $rank" "$err" ||
        fail "rank $other does not name rank $rank"
    all_ended $(pids)
done

# Interrupts end the job, and the job's status is that of the signal.
for signal in INT TERM HUP; do
    checks=$((checks + 1))
    : >"$out" # a signal for the sake of the last run's would come too early
    env --default-signal=$signal "$perf" all_gather --ranks 3 \
        --delay 1:50 -b 8 -e 8 -n 100000 >"$out" 2>"$err" &
    job=$!
    until_seen '#wrong' "$out"
    kill -$signal $job
    wait $job
    status=$?
    [ "$status" -eq $((128 + $(kill -l $signal))) ] ||
        fail "SIG$signal: exit status $status"
    all_ended $(pids)
done

# Nothing outlives a parent that is killed.
checks=$((checks + 1))
: >"$out"
"$perf" all_gather --ranks 3 --delay 1:50 -b 8 -e 8 -n 100000 \
    >"$out" 2>"$err" &
job=$!
until_seen '#wrong' "$out"
kill -KILL $job
wait $job 2>/dev/null
all_ended $(pids)

# What cannot be is refused before it is measured.
bad 1 'buffers need [0-9.]+ TiB on .*, which has [0-9.]+ .iB available' \
    "$perf" all_gather --ranks 2 -b 8T -e 8T
bad 1 '--plot .*: gnuplot is not installed' \
    env PATH=/nonexistent "$perf" all_gather --ranks 2 \
    --plot "$TMPDIR/x.png" "${small[@]}"
[ "$(good_rows "$out")" -eq 0 ] || fail "measured nevertheless"
finish
