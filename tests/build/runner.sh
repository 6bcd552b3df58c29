#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# The runner's own test: what must fail fails, with its reason, and nothing
# that a test started outlives it.
set -u
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
mkdir "$work/src" "$work/build"
bad=0

# make_test NAME: standard input is the body.
make_test() {
    { echo '#!/bin/sh' && cat; } >"$work/src/$1"
    chmod +x "$work/src/$1"
}

make_test pass <<<'exit 0'
make_test fail <<<'echo what broke; exit 3'
make_test crash <<<'kill -SEGV $$'
make_test killed <<<'kill -KILL $$'
make_test hang <<<'trap "" TERM; while :; do sleep 1000; done'
make_test skip <<<'echo "SKIP: no such device"; echo; exit 77'
make_test skip_silent <<<'exit 77'
make_test leftover <<EOF2
setsid sh -c 'echo \$\$ >"$work/left"; exec sleep 1000' &
while [ ! -s "$work/left" ]; do :; done
exit 0
EOF2
make_test litter <<<'touch "$TMPDIR/litter"; echo "$TMPDIR" >'"$work/tmpdir"

runner=$srcdir/tests/runner
export srcdir=$work/src builddir=$work/build
"$runner" -l 2 \
    pass fail crash killed hang skip skip_silent leftover litter missing \
    >"$work/out" 2>&1
status=$?
cat "$work/out"

want() {
    if ! grep -Eqx "$1" "$work/out"; then
        echo "runner.sh: no line '$1'"
        bad=1
    fi
}

want 'PASS pass [0-9.]+ s'
want 'PASS litter [0-9.]+ s'
want 'FAIL fail [0-9.]+ s \(exit status 3\)'
want '    \| what broke'
want 'FAIL crash [0-9.]+ s \(killed by signal 11\)'
want 'FAIL killed [0-9.]+ s \(killed by signal 9\)'
want 'FAIL hang [0-9.]+ s \(over 2 s: stopped\)'
want 'SKIP skip [0-9.]+ s \(SKIP: no such device\)'
want 'FAIL skip_silent [0-9.]+ s \(skipped without a reason\)'
want 'FAIL leftover .*left processes behind: [0-9]+ \(sleep 1000 *\)\)'
want 'FAIL missing [0-9.]+ s \(exit status 127\)'
want 'Slowest:'
if [ "$(tail -n 1 "$work/out")" != '2 passed, 7 failed, 1 skipped' ]; then
    echo 'runner.sh: the last line does not count them'
    bad=1
fi
if [ "$status" -eq 0 ]; then
    echo 'runner.sh: success, although tests failed'
    bad=1
fi
# A killed process that nobody reaps stays as a zombie: not running.
state=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$(cat "$work/left")/status" \
    2>/dev/null)
if [[ $state == [!ZX]* ]]; then
    echo 'runner.sh: a left process is still running'
    bad=1
fi
if [ -e "$(cat "$work/tmpdir")" ]; then
    echo 'runner.sh: a temporary folder is still there'
    bad=1
fi
if ! "$runner" pass; then
    echo 'runner.sh: no success, although all passed'
    bad=1
fi
exit $bad
