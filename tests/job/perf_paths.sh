#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Every path of AllGather over a few layouts (perf_path_shapes.sh has more);
# what chooses a path, and that the choice is said, and can be repeated from
# what is said.
. "$srcdir/tests/job/perf_lib.sh"

odd=(-d int8 --per-rank -b 4097 -e 99999 -f 24)
each 2 --ranks 4 --nodes 2 "${odd[@]}"
each 2 --ranks 6 --nodes 3,1,2 --map cyclic --carriers 1 "${odd[@]}"
HCE_TRANSPORT=loop HCE_LOOP_SEED=1 \
    HCE_LOOP_FAULTS=delay=20,reorder=20,refuse=20,pieces=20,twice=10 \
    each 2 --ranks 5 --nodes 5 "${odd[@]}"

# chosen LINE-PATTERN ENV...: one choice, as the log has it; in $line.
chosen() {
    local pattern=$1
    shift

    run env HCE_LOG=tuning "$@" "$perf" all_gather --threads --ranks 4 \
        --nodes 4 -b 4M -e 4M -n 2
    [ "$status" -eq 0 ] || fail "exit status $status, expected 0"
    line=$(sed -n 's/.*INFO tuning: \([a-z_]* path: .* 1048576 bytes a rank.*\)/\1/p' \
        "$err" | head -n 1)
    [[ $line =~ $pattern ]] || fail "'$line' does not match '$pattern'"
}

one=NCCL_ENABLE_HCE_AG_RING two=NCCL_HIER_CE_COLL_AG_RAIL_RING_ENABLE
direct='^direct path: RMA proxy \+ CE, '
ring='^ring path: RMA proxy ring \+ CE, '
chosen "\\(auto by built-in figures"
for name in $one $two; do
    chosen "$direct.*asked for by $name" $name=0
    chosen "$ring.*asked for by $name" $name=1
    chosen "$ring.*asked for by $name" $name=-7
    bad 1 "$name=\"abc\": expected an integer" env $name=abc "$perf" \
        all_gather --threads --ranks 2 --nodes 2 -b 8 -e 8
done
chosen "$ring.*asked for by" $one=1 $two=2
bad 1 "$one asks for the path ring, $two=0 for direct" \
    env $one=1 $two=0 "$perf" all_gather --threads --ranks 2 -b 8 -e 8
chosen '^flat path: RMA proxy \+ CE, .*asked for by HCE_AG_PATH' \
    HCE_AG_PATH=flat $one=1
grep -q "WARN tuning: $one=1 is ignored: HCE_AG_PATH=flat" "$err" ||
    fail "nothing says that $one is ignored"
chosen '^ring_short path: RMA proxy ring \+ CE, .*[(]asked for by ' \
    HCE_AG_PATH=ring_short
bad 1 'ring_short .* cannot run here: .*both directions' \
    env HCE_RING_DIRS=1 HCE_AG_PATH=ring_short "$perf" all_gather --threads \
    --ranks 3 --nodes 3 -b 8 -e 8
bad 1 'HCE_AG_PATH="rign": expected auto, direct' env HCE_AG_PATH=rign \
    "$perf" all_gather --threads --ranks 2 -b 8 -e 8
grep -q '^# Verdict: FAILED, .*HCE_AG_PATH="rign": expected auto' "$out" ||
    fail "the verdict does not name the first cause"
bad 1 "HCE_CARRIERS is 'many', expected auto, rails or a number" \
    env HCE_CARRIERS=many "$perf" all_gather --threads --ranks 2 -b 8 -e 8

# Scratch memory: none leaves the paths that need none.
bad 1 'HCE_SCRATCH is 4503599627370496 bytes, expected at most' \
    env HCE_SCRATCH=4096T "$perf" all_gather --threads --ranks 2 -b 8 -e 8
chosen '; not eager: the slices are larger' HCE_SCRATCH=0
HCE_SCRATCH=0 good 1 4 "$perf" all_gather --ranks 4 --nodes 2 -b 1K -e 1K

# What is said repeats the choice: all but the reason is the same.
for setting in HCE_LOG=tuning HCE_AG_PATH=ring "HCE_RING_DIRS=1 $one=1" \
    'HCE_CARRIERS=1 HCE_AG_PATH=direct HCE_CHUNK_WIDTH=64K'; do
    chosen . $setting
    first=${line%% (*}
    chosen . $(sed 's/.*\[\(.*\)\]$/\1/' <<<"$line")
    [ "${line%% (*}" = "$first" ] || fail "'$line' does not repeat '$first'"
done

# Calibrated: the choice then comes from the file.
if grep -q '^#define HCE_HAVE_JANSSON 1' "$builddir/config.h"; then
    file=$TMPDIR/tuning.json
    for ranks in 4 2 4; do
        run "$perf" all_gather --threads --ranks $ranks --nodes $ranks \
            --calibrate "$file" -b 4K -e 4M -f 32 -n 5
        [ "$status" -eq 0 ] || fail "exit status $status, expected 0"
        grep -q '^# direct: [0-9.]* us a step, [0-9.]* MB/s' "$out" ||
            fail "no figures of direct"
    done
    [ "$(grep -c '"path": "direct"' "$file")" -eq 2 ] ||
        fail "not one figure of direct for each of two layouts"
    chosen '\(auto by tuning file, [0-9]+ us; ' HCE_TUNING_FILE="$file"
    echo '{"version": 3}' >"$file"
    bad 1 'HCE_TUNING_FILE .*: expected version 1' \
        env HCE_TUNING_FILE="$file" "$perf" all_gather --threads --ranks 2 \
        -b 8 -e 8
    bad 64 "--path: 'flat' is not for --calibrate" "$perf" all_gather \
        --path flat --calibrate "$file"
fi

if command -v gnuplot >/dev/null; then
    each 3 --ranks 4 --nodes 2 -b 1K -e 64K -f 8 --plot "$TMPDIR/each.svg"
    for path in direct ring ring_short flat; do
        grep -q ">$path<" "$TMPDIR/each.svg" || fail "no curve of $path"
    done
fi
grep -q '^# Side by side: ' "$out" || fail "no times side by side"
finish
