#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# A lab up and down 50 times, with commands that are interrupted at random:
# afterwards it is up as a whole or not there, and down leaves nothing.
# usage: updown.sh [SEED]
. "$srcdir/tests/lab/lab_lib.sh"
set -m # a background command of a script would ignore SIGINT
seed=${1:-$RANDOM}
echo "seed $seed"
RANDOM=$seed
times=50
signals=(INT TERM KILL)

# interrupted COMMAND...: within the first 0.4 s.
interrupted() {
    local delay signal pid

    delay=$(printf '0.%03d' $((RANDOM % 400)))
    signal=${signals[RANDOM % 3]}
    echo "$signal after $delay s: ${*#"$srcdir"/}"
    "$@" >"$out" 2>"$err" &
    pid=$!
    sleep "$delay"
    kill -s "$signal" $pid 2>/dev/null
    wait $pid 2>/dev/null
}

whole_or_nothing() {
    if "$lab" bytes >"$out" 2>"$err"; then
        [ "$(grep -c '^hn' "$out")" -eq 3 ] || fail "a part of a lab"
    else
        grep -q 'no lab named' "$err" || fail "neither up nor down"
        nothing_left "$LIBHCE_LAB"
    fi
}

lab_up 1 none
"$lab" down
for ((i = 0; i < times; i++)); do
    case $((RANDOM % 4)) in
    0) interrupted "$lab" up 3 500mbit --owner $$ ;;
    1)
        lab_up 3 500mbit
        interrupted "$lab" down
        ;;
    2)
        lab_up 3 500mbit
        interrupted "$lab" run 3 2 "$perf" all_gather -n 1000
        ;;
    3)
        # Its owner is gone before it is up, or soon after.
        sleep "0.$(printf %03d $((RANDOM % 400)))" &
        run "$lab" up 3 500mbit --owner $!
        wait $!
        nothing_left "$LIBHCE_LAB"
        ;;
    esac
    whole_or_nothing
    "$lab" down 2>/dev/null || fail "down"
    nothing_left "$LIBHCE_LAB"
    [ "$failures" -eq 0 ] || break
done
finish
