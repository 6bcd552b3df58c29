#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# hce_perf reduce_kernel: a row a size and datatype, with every variant of the
# kernels; wrong arguments. Says nothing about speed.
. "$srcdir/tests/job/perf_lib.sh"

# rows N ARG...: so many rows, all right, no rate of 0.
rows() {
    local want=$1
    shift

    run "$perf" reduce_kernel -n 1 "$@"
    [ "$status" -eq 0 ] || fail "exit status $status"
    [ "$(awk '!/^#/ && NF == 13 && $13 == "yes" && $6 > 0 && $7 > 0 &&
              $9 > 0 { n++ } END { print n + 0 }' "$out")" -eq "$want" ] ||
        fail "expected $want rows"
}

wrong() {
    local pattern=$1
    shift

    bad 64 "$pattern" "$perf" reduce_kernel "$@"
    [ ! -s "$out" ] || fail "something was run"
}

rows 3 -b 1000 -e 16000 -f 4
rows 12 -d all -o avg -b 4099 -e 4099 -k 3 -m 2
rows 1 -d bfloat16 -b 64K -e 64K --streaming -m 3
rows 1 -d f8e5m2 -o max -b 8K -e 8K --in-place
for variant in portable avx2 avx512 avx512-bf16; do
    run env HCE_REDUCE_KERNEL=$variant "$perf" reduce_kernel -n 1 -b 1K -e 1K
    # A CPU without these instructions says so.
    if [ "$status" -eq 1 ] && [ "$variant" != portable ]; then
        grep -q "HCE_REDUCE_KERNEL=$variant: this CPU has no" "$err" ||
            fail "no reason for having no $variant"
    else
        grep -q "instructions of $variant, one thread" "$out" ||
            fail "$variant was not used"
    fi
done
bad 1 "HCE_REDUCE_KERNEL=.sse9.*portable" \
    env HCE_REDUCE_KERNEL=sse9 "$perf" reduce_kernel -n 1 -b 1K -e 1K

wrong "'y' is one argument too many" y
wrong "-b: '8Q' is not a size" -b 8Q
wrong "-e: '0' is not a size" -e 0
wrong '-b: 2048 is more than -e: expected at most 1024' -b 2K -e 1K
wrong "-d: 'quad' is unknown" -d quad
wrong "-o: 'mean' is unknown: expected sum" -o mean
wrong "-k: '0' is not acceptable: expected a whole number from 1" -k 0
wrong "-m: '65' is not acceptable" -m 65
wrong "-f: '-2' is not acceptable" -f -2
finish
