# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# For tests in a lab: sourced, not run. The lab has a name of its own, and
# ends with the test.
. "$srcdir/tests/job/perf_lib.sh"
lab=$srcdir/perf/lab
export LIBHCE_LAB=test.$$

skip() {
    echo "skipped: $*"
    exit 77
}

command -v python3 >/dev/null || skip "there is no python3"
grep -q '^#define HCE_HAVE_UCX 1' "$builddir/config.h" ||
    skip "this build is without UCX, and loop does not leave a host"

# lab_up N RATE
lab_up() {
    run "$lab" up "$1" "$2" --owner $$
    [ "$status" -ne 77 ] || skip "$(cat "$err")"
    [ "$status" -eq 0 ] || {
        fail "lab up: exit status $status"
        finish # the rest would wait for what is not there
    }
}

# Bytes that a host has received or sent so far: lab_bytes HOST received
lab_bytes() {
    "$lab" bytes | sed -n "s/^hn$1 .*$2 \([0-9]*\).*/\1/p"
}

# until_bytes HOST MORE: within 60 s, so many more bytes have come.
until_bytes() {
    local goal i

    goal=$(($(lab_bytes "$1" received) + $2))
    for i in {1..600}; do
        [ "$(lab_bytes "$1" received)" -ge "$goal" ] && return 0
        sleep 0.1
    done
    fail "nothing crosses the link of host $1"
}

# Processes of a lab are known by its name in their environment.
lab_processes() {
    local pid

    for pid in $(env -u LIBHCE_LAB grep -lzsxF "LIBHCE_LAB=$1" \
        /proc/[0-9]*/environ | cut -d / -f 3); do
        is_running "$pid" && echo "$pid"
    done
}

# nothing_left NAME: within 10 s, of a lab that is down. A process that was
# killed may take a moment to be gone.
nothing_left() {
    local left

    for _ in {1..100}; do
        left=$(lab_processes "$1")
        [ -z "$left" ] && break
        sleep 0.1
    done
    [ -z "$left" ] || fail "left processes: $left"
    ! grep -q "@hce-lab/$1\$" /proc/net/unix || fail "left a socket"
    ! grep -q ' /run/hce-' /proc/self/mountinfo || fail "left mounts"
    [ -z "$(ls -d /run/hce-* 2>/dev/null)" ] || fail "left files in /run"
    [ "$(ip -br link)" = "$links_before" ] || fail "left links"
    left=$(comm -13 <(echo "$files_before") <(ls -A "$TMPDIR"))
    [ -z "$left" ] || fail "left files: $left"
}

# job_bytes_fit PLAN BEFORE...: each host's interface received the bytes
# planned, and headers of at most 8 %. Sent may be more: what a full queue lost
# was sent again. BEFORE are the bytes received before the job.
job_bytes_fit() {
    local plan=$1 host=0 one got
    shift

    for one; do
        got=$(($(lab_bytes "$host" received) - one))
        echo "host $host received $got bytes, planned $plan"
        if [ "$got" -lt "$plan" ] ||
            [ $((got * 100)) -gt $((plan * 108)) ]; then
            fail "host $host received $got bytes, planned $plan"
        fi
        host=$((host + 1))
    done
}

# job HOSTS RANKS LAUNCHER BYTES ITERS: hce_perf, 0 wrong, puts as planned by
# every rank, and no byte too many. A plan brings each slice to a node once;
# a call to warm up and one to check go with ITERS, out of place and in place.
job() {
    local hosts=$1 ranks=$2 launcher=$3 bytes=$4 iters=$5 host

    before=()
    for ((host = 0; host < hosts; host++)); do
        before+=("$(lab_bytes "$host" received)")
    done
    run "$lab" run "$hosts" "$ranks" "$launcher" "$perf" all_gather \
        --path direct --per-rank --check-stats -b "$bytes" -e "$bytes" \
        -n "$iters"
    is_good 1 $((hosts * ranks)) "$launcher $hosts x $ranks"
    [ "$(nodes_shown)" = "$(for ((host = 0; host < hosts * ranks; host++)); do
        printf '%d ' $((host / ranks))
    done | sed 's/ $//')" ] || fail "nodes $(nodes_shown)"
    plan=$((2 * (iters + 2) * (hosts - 1) * ranks * bytes))
    job_bytes_fit "$plan" "${before[@]}"
}

touch "$out" "$err"
links_before=$(ip -br link 2>/dev/null)
files_before=$(ls -A "$TMPDIR")
