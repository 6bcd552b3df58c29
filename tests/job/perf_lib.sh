# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# For tests that run hce_perf: sourced, not run. Each check says what it
# expected and shows the output; "finish" ends the test with the result.
# environment: srcdir, builddir, TMPDIR (see tests/local.mk)
set -u
export LC_ALL=C
: "${srcdir:?}" "${builddir:?}" "${TMPDIR:?}"
perf=$builddir/perf/hce_perf
out=$TMPDIR/out err=$TMPDIR/err
failures=0 checks=0

# A wait that never ends is to become an error before the test's time limit.
export HCE_TIMEOUT=${HCE_TIMEOUT:-60s} HCE_BOOTSTRAP_TIMEOUT=60s

# Without UCX there is loop, which is never chosen by itself.
grep -q '^#define HCE_HAVE_UCX 1' "$builddir/config.h" ||
    export HCE_TRANSPORT=${HCE_TRANSPORT:-loop}

fail() {
    echo "FAILED: $*"
    sed 's/^/  out| /' "$out" | tail -n 15
    sed 's/^/  err| /' "$err" | tail -n 15
    failures=$((failures + 1))
}

# A command, its output in $out and $err, its exit status in $status.
run() {
    checks=$((checks + 1))
    echo "run: ${*/#$builddir\//}"
    "$@" >"$out" 2>"$err"
    status=$?
}

# Rows with 0 wrong, out of place and in place.
good_rows() {
    awk '!/^#/ && NF == 13 && $9 == "0" && $13 == "0" { n++ }
         END { print n + 0 }' "$1"
}

# is_good ROWS RANKS WHAT: $out is that of a run without a fault.
is_good() {
    local rows=$1 ranks=$2
    shift 2

    [ "$status" -eq 0 ] || fail "$*: exit status $status, expected 0"
    grep -q '^# Verdict: OK, 0 wrong in [0-9]' "$out" ||
        fail "$*: no verdict OK"
    [ "$(good_rows "$out")" -eq "$rows" ] ||
        fail "$*: $(good_rows "$out") good rows, expected $rows"
    [ "$(grep -c '^# rank [0-9]* pid [0-9]* host [^ ]* node [0-9]*$' \
        "$out")" -eq "$ranks" ] || fail "$*: expected $ranks lines of ranks"
    ! grep -q '\[WARN\|\[ERROR\| WARN \| ERROR ' "$err" ||
        fail "$*: unexpected warning"
}

# good ROWS RANKS COMMAND...: runs it, expects no fault.
good() {
    local rows=$1 ranks=$2
    shift 2

    run "$@"
    is_good "$rows" "$ranks" "$*"
}

# each SIZES FLAG...: every path at so many sizes. What is refused is said.
each() {
    local sizes=$1 rows refused
    shift

    run "$perf" all_gather --threads --path each --check-stats -n 3 -c 2 "$@"
    [ "$status" -eq 0 ] || fail "exit status $status, expected 0"
    grep -q '^# Verdict: OK, 0 wrong in [0-9]' "$out" || fail "no verdict OK"
    rows=$(good_rows "$out")
    refused=$(grep -c '^# not [a-z_, 0-9]* at [0-9]* bytes: ' "$out")
    [ $((rows + refused)) -ge $((4 * sizes)) ] &&
        [ $(((rows + refused) % sizes)) -eq 0 ] &&
        [ "$rows" -ge $((3 * sizes)) ] ||
        fail "$rows rows and $refused refusals for $sizes sizes"
}

# bad STATUS PATTERN COMMAND...: expects a failure that says PATTERN.
bad() {
    local want=$1 pattern=$2
    shift 2

    run "$@"
    [ "$status" -eq "$want" ] || fail "exit status $status, expected $want"
    grep -qE -- "$pattern" "$err" || fail "no message that matches '$pattern'"
}

# Nodes of ranks 0, 1, ... as hce_perf printed them.
nodes_shown() {
    sed -n 's/^# rank [0-9]* pid [0-9]* host [^ ]* node //p' "$out" |
        tr '\n' ' ' | sed 's/ $//'
}

is_running() { # a zombie is not
    local state

    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' \
        "/proc/$1/status" 2>/dev/null)
    [ -n "$state" ] && [ "$state" != Z ]
}

# all_ended PID...: within 10 s, none of them runs.
all_ended() {
    local i pid left

    for i in {1..100}; do
        left=
        for pid; do
            is_running "$pid" && left+=" $pid"
        done
        [ -z "$left" ] && return 0
        sleep 0.1
    done
    fail "still running:$left"
}

# until_seen PATTERN FILE: within 60 s.
until_seen() {
    local i

    for i in {1..600}; do
        grep -q -- "$1" "$2" && return 0
        sleep 0.1
    done
    fail "'$1' did not appear"
    return 1
}

finish() {
    echo "$checks runs, $failures failures"
    [ "$checks" -gt 0 ] && [ "$failures" -eq 0 ]
    exit
}
