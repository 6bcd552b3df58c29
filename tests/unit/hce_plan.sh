#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# hce_plan: what it shows, draws and proves of known plans, that all of it
# follows a change of one op, and how it refuses wrong arguments.
# environment: srcdir, builddir, TMPDIR, TEST_WRAPPER (see tests/local.mk)
set -u
plan="${TEST_WRAPPER:-} ${builddir:?}/tools/hce_plan"
golden=${srcdir:?}/tests/unit/golden
tmp=${TMPDIR:?}
out=$tmp/out err=$tmp/err
failures=0
unset ${!HCE_*}

fail() {
    echo "FAIL: $*"
    head -n 20 "$out" "$err"
    failures=$((failures + 1))
}

# run STATUS ARG...: runs hce_plan, keeps its output, expects the exit status.
run() {
    local want=$1 status

    shift
    $plan "$@" >"$out" 2>"$err"
    status=$?
    [ "$status" -eq "$want" ] || fail "hce_plan $*: exit status $status"
}

has() {
    grep -qE -- "$2" "$1" || fail "no line matches $2"
}

# wrong PATTERN ARG...: refused with a message, before anything is done.
wrong() {
    local pattern=$1

    shift
    run 64 "$@"
    has "$err" "$pattern"
    [ ! -s "$out" ] || fail "output in spite of a wrong argument: $*"
}

# equal FILE: the output is what is kept in a file.
equal() {
    diff -u "$golden/$1" "$out" || fail "the output is not that of $1"
}

small="--nodes 2,1 --bytes 450 --width 100 --contexts 1"

# ---- arguments ----

wrong 'command is missing: expected show, verify, draw or chunks'
wrong "'prove' is unknown: expected one of show, verify, draw, chunks" prove
wrong "'draw' is one argument too many: expected flags after show" show draw
wrong "--coll: 'gather' is unknown: expected one of all_gather" \
    show --coll gather
wrong "--path: 'rign' is unknown: expected one of direct" show --path rign
wrong "--path: 'all' is unknown" show --path all
wrong "--path: 'rign' is unknown: .*, all" verify --path rign
wrong "--ranks: '0' is not acceptable: .* from 1 to 16384" show --ranks 0
wrong "--nodes: '4' does not fit 6 ranks: .*divide" show --ranks 6 --nodes 4
wrong "--nodes: '3,x' does not fit 3 ranks: expected sizes" show --nodes 3,x
wrong "--map: 'ring' is unknown: expected one of block, cyclic" \
    show --map ring
wrong "--bytes: '8Q' is not a size: expected bytes such as" show --bytes 8Q
wrong "--bytes: '' is not a size" chunks --bytes 1M,
wrong '--bytes: 2 sizes are too many: expected one' show --bytes 1M,2M
wrong "--contexts: '17' is not acceptable: .* from 1 to 16" \
    show --contexts 17
wrong "--carriers: '-1' is not acceptable" show --carriers -1
wrong "--dirs: '3' is not acceptable: .* from 1 to 2" show --dirs 3
wrong "--width: 'wide' is not acceptable: expected rule, auto, or bytes" \
    show --width wide
wrong "--width: '0' is not acceptable" show --width 0
wrong "--rank: 'any' is not acceptable" show --rank any
wrong '--rank: 4 is not a rank: expected less than 4, or all' \
    show --ranks 4 --rank 4
wrong "--late: '3' is incomplete: expected RANK:STEPS" draw --late 3
wrong '--late: 9 is not a rank: expected less than 4' \
    draw --ranks 4 --late 9:1
wrong '--late: expected with draw only' show --late 1:1
wrong '--json: draw writes SVG' draw --json
wrong '--from: chunks builds its plans' chunks --from x
wrong '--from: the file says what the call' show --from x --ranks 4
wrong '--rank: the plans of a file are verified all together' \
    verify --from x --rank 0
wrong "unrecognized option '--rang" show --rang=4

run 0 --help
has "$out" 'Exit status: 0 if all went well'
has "$out" 'Paths of all_gather: direct, '
run 0 --version
has "$out" '^hce_plan \(libhce '

# ---- show ----

run 0 show $small
equal plan_show.txt
run 0 show $small --rank all
[ "$(grep -c '^all_gather direct, rank' "$out")" -eq 3 ] ||
    fail "not all ranks are shown"
run 0 show --nodes 2 --ranks 4 --map cyclic --rank 2 --in-place --bytes 4M
has "$out" 'rank 2 of 4 on node 0 of 2, 1048576 bytes a rank, in place'
run 0 show --ranks 4 --bytes 1M --per-rank --width auto
has "$out" '1048576 bytes a rank, out of place, chunks of 262144'
run 1 show -o "$tmp/none/plan"
has "$err" "$tmp/none/plan: cannot be written: No such file"
$plan show >/dev/full 2>"$err" && fail "a full disk went unnoticed"
has "$err" 'standard output: cannot be written in full'

# ---- verify ----

run 0 verify --path all --nodes 3,1,2 --bytes 100003
has "$out" '^proved: direct: full proof, .* 6 ranks on 3 nodes, 16667 bytes'
has "$out" '^proved: flat: full proof'
run 0 verify --ranks 1 --bytes 0
has "$out" '^proved: .* 1 rank on 1 node, 0 bytes'
run 2 verify --ranks 260 --nodes 65 --bytes 260
has "$out" '^partly: direct: checked by rank, not replayed, 260 ranks'
run 2 verify --ranks 8192 --nodes 1024 --bytes 8K --per-rank --path flat \
    --rank 4099
has "$out" '^partly: flat: rank 4099 of 8192 .* 2 ranks that share counters'
run 2 verify --ranks 260 --nodes 26 --bytes 64 --per-rank --path eager
has "$out" '^partly: eager: checked by rank, .* is counted, not traced$'
run 2 verify --ranks 8192 --nodes 1024 --bytes 64 --per-rank --path eager \
    --rank 8
has "$out" '^partly: eager: rank 8 of 8192 .* is counted, not traced$'

# ---- draw ----

run 0 draw $small
equal plan_draw.svg
# What depends on a late rank is later, the rest is not.
run 0 draw $small --late 2:5
has "$out" 'rank 0 completes at step 8'
has "$out" 'rank 0 op 4: copy, 100 bytes of slice 0 to 0, 1; step 0'
run 1 draw --ranks 256 --nodes 32 --bytes 4G --contexts 16
has "$err" 'ops are too many to draw: expected at most'

# ---- chunks ----

run 0 chunks --path direct --per-rank --bytes 64M,1G
has "$out" '^64	64	0	16	16	4	4$'
has "$out" '^1024	1024	0	64	64	16	16$'
if $plan --help | grep -q 'all_gather: .*ring'; then
    # Columns: a rank, cw, ccw, two widths, two numbers of chunks. The rows
    # of 128, 256 and 512 MiB are published.
    run 0 chunks
    sed 1,2d "$out" >"$tmp/rows"
    diff -u - "$tmp/rows" <<'END' || fail "the geometry is another"
64	32	32	16	16	2	2
128	64	64	32	16	2	4
256	128	128	64	32	2	4
512	256	256	64	64	4	4
1024	512	512	64	64	8	8
END
fi

# ---- files ----

if $builddir/tools/hce_info | grep -q '^ *jansson *no'; then
    run 1 show --json
    has "$err" 'no jansson'
    [ "$failures" -eq 0 ] && echo "hce_plan is as expected, without JSON"
    exit
fi
run 0 show $small --rank 2 --json
equal plan_rank2.json
run 0 show $small --rank all --json -o "$tmp/plans.json"
[ ! -s "$out" ] || fail "-o leaves something on standard output"
run 0 show --from "$tmp/plans.json" --rank 0
equal plan_show.txt
run 0 draw --from "$tmp/plans.json"
equal plan_draw.svg
run 0 verify --from - <"$tmp/plans.json"
has "$out" '^proved: direct: full proof, .* out of place, '
run 0 verify --json --from "$tmp/plans.json"
has "$out" '"verdict": "proved", "full": true, "formula": true, "ops": '

# A path that this build does not have: no formula to compare with.
sed 's/"path": "direct"/"path": "foreign"/' "$tmp/plans.json" \
    >"$tmp/foreign.json"
run 2 verify --from "$tmp/foreign.json"
has "$out" '^partly: foreign: .*traffic not compared with a formula'

# One op moves fewer bytes: the table, the picture and the proof follow.
sed '0,/"bytes": 100,/s//"bytes": 99,/' "$tmp/plans.json" >"$tmp/short.json"
run 0 show --from "$tmp/short.json" --rank 0
diff "$golden/plan_show.txt" "$out" >"$tmp/diff" && fail "show is the same"
has "$tmp/diff" '^> +2 put    lane 1, 99 bytes: send'
run 0 draw --from "$tmp/short.json"
diff "$golden/plan_draw.svg" "$out" >"$tmp/diff" && fail "draw is the same"
has "$tmp/diff" '^> .*rank 0 op 2: put, 99 bytes of slice 0 to 2'
run 1 verify --from "$tmp/short.json"
has "$out" '^fault: traffic from node 0 to node 1: 299 bytes'

# A wait for more than is ever posted: named, and impossible to draw.
awk '/"value": 2/ && !done { sub("2", "7"); done = 1 } { print }' \
    "$tmp/plans.json" >"$tmp/stuck.json"
cmp -s "$tmp/plans.json" "$tmp/stuck.json" && fail "nothing was planted"
run 1 verify --from "$tmp/stuck.json"
has "$out" "^fault: counter 'flow cw 0' of rank 2 by rank 0: rank 0 op 3"

run 1 verify --from "$tmp/none.json"
has "$err" 'none.json: cannot be opened: No such file'
run 1 show --from "$tmp/plans.json" --rank 3
has "$err" 'holds no plan of rank 3'
sed '1d;$d' "$tmp/plans.json" | sed '/^,$/,$d' >"$tmp/one.json"
run 0 show --from "$tmp/one.json"
run 1 verify --from "$tmp/one.json"
has "$err" 'expected the plans of all 3 ranks in order, found 1'
run 1 draw --from "$tmp/plans.json" --late 3:1
has "$err" '--late: 3 is not a rank: expected less than 3'
echo '{"version": 2}' >"$tmp/other.json"
run 1 show --from "$tmp/other.json"
has "$err" 'other.json: plan 0: "version": expected a whole number from 1 to 1'

# It needs nothing of the transports.
if [ "$(command -v readelf)" ]; then
    readelf -d "$builddir/tools/hce_plan" | grep -E 'NEEDED.*(ucp|pmix|hwloc)' &&
        fail "it is linked with a transport"
fi

[ "$failures" -eq 0 ] && echo "hce_plan is as expected"
