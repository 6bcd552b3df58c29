#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# quickstart for an ordinary user who may not install anything: it names what
# is missing, goes on without what can be missed, builds, tests and counts;
# the second time it neither configures nor compiles.
. "$srcdir/tests/build/lib.sh"

unset CC CI
as_user=()
if [ "$(id -u)" -eq 0 ]; then
    command -v setpriv >/dev/null || skip 'setpriv is not installed'
    as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    chmod a+x "$TMPDIR" "$work"
    chown -R 65534:65534 "$src"
fi

# All commands of this machine but the named ones.
farm() {
    local name

    mkdir -p "$work/bin"
    find /usr/bin /bin /usr/local/bin -maxdepth 1 ! -type d \
        -exec ln -sf -t "$work/bin" {} +
    for name; do
        rm -f "$work/bin/$name"
    done
}

# quickstart OUT ARGUMENT...: one quick test stands for all.
quickstart() {
    local out=$work/$1

    shift
    (cd "$src" && "${as_user[@]}" env PATH="$work/bin" HOME="$src" \
        TMPDIR=/tmp MAKEFLAGS='-- TESTS=tests/build/manual.sh' "$@" \
        ./quickstart check </dev/null) 2>&1 | tee "$out"
}

echo '== without what it cannot do without'
farm sudo automake
! quickstart must || fail 'it went on without automake'
has '^Not installed: .*automake' "$work/must"
has '^quickstart: cannot build without automake$' "$work/must"

echo '== without what can be missed'
farm sudo gnuplot
quickstart want PKG_CONFIG_LIBDIR=/nowhere ||
    fail 'it did not go on without gnuplot'
has '^Not installed: gnuplot-nox .*libcmocka-dev.*libucx-dev' "$work/want"
has '^ +sudo apt-get install .*gnuplot-nox' "$work/want"
has '^Built ./build$' "$work/want"
has '^PASS tests/build/manual ' "$work/want"
[ "$(tail -n 1 "$work/want")" = '1 passed, 0 failed, 0 skipped' ] ||
    fail 'the last line does not count'

echo '== again'
before=$(find "$src/build" -name '*.o' -newer "$src/build/config.status" |
    wc -l)
[ "$before" -gt 0 ] || fail 'nothing was compiled'
touch "$work/between"
quickstart again PKG_CONFIG_LIBDIR=/nowhere
after=$(find "$src/build" \( -name '*.o' -o -name config.status \) \
    -newer "$work/between")
[ -z "$after" ] || fail "made again: $after"

echo '== with other flags'
quickstart flags PKG_CONFIG_LIBDIR=/nowhere CFLAGS=-O0
[ "$src/build/config.status" -nt "$work/between" ] ||
    fail 'other flags did not configure again'

echo '== with a test that fails'
! quickstart failing PKG_CONFIG_LIBDIR=/nowhere CFLAGS=-O0 \
    MAKEFLAGS='-- TESTS=tests/nothing' || fail 'a failure is not in the status'
[ "$(tail -n 1 "$work/failing")" = '0 passed, 1 failed, 0 skipped' ] ||
    fail 'the last line does not count the failure'
