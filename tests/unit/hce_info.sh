#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# hce_info: what it prints, how it fails, and that docs/ENV.md is what
# "hce_info --doc" prints.
# environment: srcdir, builddir, TMPDIR, TEST_WRAPPER (see tests/local.mk)
set -u
info="${TEST_WRAPPER:-} ${builddir:?}/tools/hce_info"
out=${TMPDIR:?}/out err=$TMPDIR/err
failures=0
unset ${!HCE_*}

# run STATUS ARG...: runs hce_info, keeps its output, expects the exit status.
run() {
    local want=$1 status

    shift
    $info "$@" >"$out" 2>"$err"
    status=$?
    [ "$status" -eq "$want" ] || fail "hce_info $*: exit status $status"
}

fail() {
    echo "FAIL: $*"
    cat "$out" "$err"
    failures=$((failures + 1))
}

has() {
    grep -qE -- "$2" "$1" || fail "no line matches $2"
}

run 0
for title in Version Build Devices Transports Topology; do
    has "$out" "^$title\$"
done
has "$out" '^  loop '
has "$out" '^  machine .*[0-9]'
has "$out" '^  ucx .*(yes|no: )'
[ ! -s "$err" ] || fail "unexpected warning"

run 0 --version
has "$out" "^hce_info \(libhce $(. "${srcdir:?}/VERSION" && echo "$VERSION")\)\$"

# Every setting once, and where its value comes from.
run 0 -c
has "$out" '^HCE_LOG=warn  # default$'
[ -z "$(grep -v '^ ' "$out" | cut -d = -f 1 | sort | uniq -d)" ] ||
    fail "a setting is twice"
[ -z "$(grep -vE '^(HCE|NCCL)_[A-Z_]+=.*  # default$|^    # [^ ].*' "$out")" ] ||
    fail "a line is neither NAME=value  # origin nor a comment"
[ -z "$(grep -E '.{80}' "$out")" ] || fail "a line is too long"
HCE_LOG=warn,core HCE_TRANSPORT=loop run 0 -c
has "$out" '^HCE_LOG=warn,core  # environment$'
has "$out" '^HCE_TRANSPORT=loop  # environment$'
has "$out" '^HCE_LOG_FILE=  # default$'

HCE_TRANSPORT=pigeon run 1 -c
has "$err" 'HCE_TRANSPORT="pigeon": expected one of auto, '
[ ! -s "$out" ] || fail "values in spite of an error"
HCE_TRANSPROT=loop run 0 -c
has "$err" 'HCE_TRANSPROT is not a setting; the nearest one is HCE_TRANSPORT'

# A table that lib/core does not list would be neither read nor shown.
grep -rhoE '^const hce_config_table_t \w+' "$srcdir/lib" | cut -d ' ' -f 3 |
    while read -r table; do
        grep -q "^    &$table,\$" "$srcdir/lib/core/settings.c" ||
            echo "$table is not in lib/core/settings.c"
    done >"$err"
[ ! -s "$err" ] || fail "tables are missing"

# What is only checked when all settings are known.
for bad in HCE_AG_PATH=abc HCE_CHUNK_WIDTH=0 HCE_CARRIERS=x HCE_SCRATCH=9999T \
    NCCL_ENABLE_HCE_AG_RING=abc HCE_TUNING_FILE=/nonexistent HCE_PROXY_CPUS=x; do
    export "${bad?}"
    run 1 -c
    has "$err" "ERROR .*${bad%%=*}"
    unset "${bad%%=*}"
done
HCE_AG_PATH=abc run 1 -c
has "$err" 'HCE_AG_PATH="abc": expected auto, direct, ring, .*eager'

run 64 --nonsense
run 64 argument
has "$err" "'argument': expected no argument"
$info -c >/dev/full 2>"$err" && fail "a full disk went unnoticed"

HCE_TRANSPORT=loop run 0 --doc
if ! diff -u "$srcdir/docs/ENV.md" "$out"; then
    fail "docs/ENV.md is stale: run make update-env-doc"
fi
# Every setting that -c prints is in the page.
$info -c | grep -v '^ ' | cut -d = -f 1 | while read -r name; do
    grep -qF "| \`$name\` |" "$out" || echo "$name"
done >"$err"
[ ! -s "$err" ] || fail "settings that the page lacks"

[ "$failures" -eq 0 ] && echo "hce_info is as expected"
