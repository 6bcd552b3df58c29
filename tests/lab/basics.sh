#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# A job over two hosts of a lab; a link that is cut for good and one that is
# mended; two labs at once; what is left afterwards.
. "$srcdir/tests/lab/lab_lib.sh"
lab_up 2 500mbit

echo "== in a chroot, which has the same files: it cannot be, and says so"
# shellcheck disable=SC2016 # for the other shell
bad 77 'needs a root directory that is a mount' unshare -m bash -c '
    mkdir "$1" && for entry in /*; do
        if [ -L "$entry" ]; then
            cp -P "$entry" "$1/"
        elif [ -d "$entry" ]; then
            mkdir "$1$entry" && mount --rbind "$entry" "$1$entry"
        fi
    done
    chroot "$1" "$2" -l chroot up 1 none' - "$TMPDIR/root" \
    "$(realpath "$lab")"
rm -d "$TMPDIR"/root/* "$TMPDIR/root"

job 2 2 env 1048576 5

echo "== the checks find what is wrong"
if (failures=0 && job_bytes_fit $((plan / 2)) "${before[@]}" >/dev/null &&
    [ "$failures" -eq 0 ]); then
    fail "twice the bytes planned were not noticed"
fi
[ -n "$(lab_processes "$LIBHCE_LAB")" ] || fail "a lab without processes"
grep -q "@hce-lab/$LIBHCE_LAB\$" /proc/net/unix || fail "it has no socket"

echo "== cut for good: silence is found, and who is silent is named"
HCE_SILENCE=2s "$lab" run 2 2 "$perf" all_gather --per-rank -b 4M -e 4M \
    -n 1000 >"$out" 2>"$err" &
pid=$!
until_bytes 1 8000000
"$lab" cut 1 || fail "cut"
wait $pid
status=$?
[ $status -eq 1 ] || fail "exit status $status of a job that was cut"
grep -q 'on hn1 (pid [0-9]*) has sent nothing for' "$err" ||
    fail "nobody says that host 1 is silent"
"$lab" mend 1 || fail "mend"

echo "== cut for a second: the run goes on"
"$lab" run 2 2 "$perf" all_gather --per-rank -b 4M -e 4M -n 9 \
    >"$out" 2>"$err" &
pid=$!
until_bytes 1 8000000
"$lab" cut 1 || fail "cut"
sleep 1
is_running $pid || fail "the job had ended before the link was mended"
"$lab" mend 1 || fail "mend"
wait $pid
status=$?
is_good 1 4 "a run with a link cut for a second"

echo "== a run that is killed leaves no rank behind"
"$lab" run 2 2 "$perf" all_gather --per-rank -b 4M -e 4M -n 100003 \
    >"$out" 2>"$err" &
pid=$!
until_bytes 1 8000000
kill -KILL $pid
wait $pid 2>/dev/null
for _ in {1..100}; do
    grep -qzsxF 100003 /proc/[0-9]*/cmdline || break
    sleep 0.1
done
! grep -qzsxF 100003 /proc/[0-9]*/cmdline || fail "ranks are left"

echo "== two labs at once"
bad 1 'is up' "$lab" up 2 none --owner $$
run "$lab" -l "$LIBHCE_LAB.b" up 2 none --owner $$
[ "$status" -eq 0 ] || fail "second lab: exit status $status"
was=$("$lab" -l "$LIBHCE_LAB.b" bytes)
run "$lab" exec 1 sh -c 'hostname; ip route; ls /sys/class/net >/dev/null'
[ "$(cat "$out")" = "hn1
198.18.77.0/24 dev eth0 proto kernel scope link src 198.18.77.11 " ] ||
    fail "a host with another name, or a way out"
job 2 1 env 1048576 5
[ "$("$lab" -l "$LIBHCE_LAB.b" bytes)" = "$was" ] ||
    fail "the labs have met"
"$lab" -l "$LIBHCE_LAB.b" down || fail "down of the second lab"

echo "== wrong arguments"
bad 1 'not a host' "$lab" exec 2 true
bad 1 'not a host' "$lab" run 3 1 true
bad 1 "not a rate" "$lab" -l "$LIBHCE_LAB.b" up 2 fast
bad 2 'COMMAND is missing' "$lab" exec 0
bad 127 'cannot run /nonexistent' "$lab" exec 0 /nonexistent
run "$lab" exec 0 sh -c 'exit 7'
[ "$status" -eq 7 ] || fail "exit status $status, expected the command's 7"

"$lab" down || fail "down"
nothing_left "$LIBHCE_LAB"
bad 1 'no lab named' "$lab" exec 0 true
finish
