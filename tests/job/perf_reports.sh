#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# What hce_perf writes: the table's form, the JSON file, the picture.
. "$srcdir/tests/job/perf_lib.sh"
job=("$perf" all_gather --ranks 4 --nodes 2 -b 1K -e 64K -f 8 -n 3)

# Columns and units as users of nccl-tests know them.
good 3 4 "${job[@]}"
grep -qE '^# +size +count +type +redop +root +time +algbw +busbw #wrong +time +algbw +busbw #wrong$' \
    "$out" || fail "no line of column names"
grep -qE '^# +\(B\) +\(elements\) +\(us\) +\(GB/s\) +\(GB/s\) +\(us\) +\(GB/s\) +\(GB/s\) *$' \
    "$out" || fail "no line of units"
grep -qE '^ +8192 +512 +float +none +-1 ' "$out" ||
    fail "no row of 4 x 512 floats"
grep -q '^# Out of bounds values : 0 OK$' "$out" || fail "no count of wrong"
grep -qE '^# Avg bus bandwidth +: [0-9.e+-]+$' "$out" || fail "no mean"
grep -qE '^# path [a-z_]+, [0-9]+ contexts?, chunks of [0-9]+ bytes: .' \
    "$out" || fail "no path with its reason"

# busbw = algbw x (R-1)/R and algbw = bytes/time, as far as digits go.
awk '!/^#/ && NF == 13 {
    want = $1 / $6 / 1000
    if ($7 < want * 0.98 - 0.01 || $7 > want * 1.02 + 0.01) exit 1
    if ($8 < $7 * 0.75 - 0.02 || $8 > $7 * 0.75 + 0.02) exit 1
}' "$out" || fail "bandwidths do not follow from size and time"

# The progress bar is for terminals.
! grep -q '\[#' "$err" || fail "a progress bar in a file"
for average in 0 2 3; do
    good 3 4 "${job[@]}" -a $average
done
if [ -c /dev/full ]; then
    "$perf" all_gather --ranks 2 -b 1K -e 1K >/dev/full 2>"$err"
    [ $? -eq 1 ] || fail "a table that could not be written was a success"
    grep -q '^hce_perf: cannot write to standard output$' "$err" ||
        fail "nothing says that the table could not be written"
fi
run "$perf" all_gather --ranks 2 -b 1K -e 1K -c 0
grep -q '^# Verdict: OK, nothing checked' "$out" || fail "-c 0 was a check"

file="$TMPDIR/it's \$HOME.json"
if grep -q '^#define HCE_HAVE_JANSSON 1' "$builddir/config.h"; then
    PERF_SECRET=xyzzy good 3 4 "${job[@]}" --json "$file"
    for key in '"libhce"' '"collective": "all_gather"' '"num_ranks": 4' \
        '"num_nodes": 2' '"min_bytes": 1024' '"nodes": "2"' \
        '"verdict": "OK, 0 wrong in'; do
        grep -q -- "$key" "$file" || fail "JSON has no $key"
    done
    [ "$(grep -c '"in_place"' "$file")" -eq 3 ] || fail "JSON has not 3 rows"
    # Each rank moved something in each of the rows, and launched nothing.
    [ "$(grep -c '"kernels": 0' "$file")" -eq 4 ] ||
        fail "JSON has not 4 ranks with statistics"
    awk '/"(calls|put_bytes|copy_bytes)":/ && $2 + 0 > 0 { n++ }
         END { exit n < 12 }' "$file" || fail "JSON has empty statistics"
    ! grep -q xyzzy "$file" || fail "JSON has the environment in it"
    good 0 4 "${job[@]}" --single --milliseconds 20 --out-of-place \
        --json "$file"
    [ "$(grep -c '"in_place": null' "$file")" -eq 3 ] ||
        fail "something was measured in place"
    [ "$(grep -cE '"single_us": [0-9]*[1-9]' "$file")" -eq 3 ] ||
        fail "no times of single calls"
    [ "$(grep -cE '"cpu_sec": [0-9]' "$file")" -eq 3 ] || fail "no CPU time"
    [ "$(grep -A 1 '"out_of_place": {' "$file" |
        grep -cE '"calls": ([5-9]|[1-9][0-9]+),')" -eq 3 ] ||
        fail "too few calls"
    if command -v python3 >/dev/null; then
        python3 -m json.tool "$file" >/dev/null || fail "JSON is malformed"
    fi
else
    echo "JSON is left out: this build is without jansson"
    bad 64 "--json: .*: this build is without jansson" "${job[@]}" \
        --json "$file"
fi

if command -v gnuplot >/dev/null; then
    file="$TMPDIR/it's \$HOME.png"
    good 3 4 "${job[@]}" --plot "$file"
    [ "$(head -c 4 "$file" | tail -c 3)" = PNG ] || fail "no PNG picture"
    good 3 4 "${job[@]}" --plot "$TMPDIR/a.svg"
    grep -q '<svg' "$TMPDIR/a.svg" || fail "no SVG picture"
    bad 1 'no size above 0' "$perf" all_gather --ranks 2 -b 0 -e 0 \
        --plot "$TMPDIR/b.svg"
    # Under a launcher this is not looked at before.
    bad 1 'gnuplot failed' env RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 \
        MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
        "$perf" all_gather -b 8 -e 8 --plot /nonexistent/c.svg
else
    echo "pictures are left out: gnuplot is not installed"
fi
finish
