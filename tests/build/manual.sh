#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# The manual: every option that a program's --help knows is in its page and the
# other way round, every public call has a page, and roff has no complaint.
set -u
: "${srcdir:?}" "${builddir:?}" "${TMPDIR:?}"
bad=0

complain() {
    echo "manual.sh: $*"
    bad=1
}

# Long options only: argp lists the short ones beside them.
options() {
    grep -oE -- '--[a-z][a-z_-]+' | grep -vE '^--(help|usage|version)$' |
        sort -u
}

# A program's options and those of its commands that have their own.
help_of() {
    "$1" --help </dev/null
    if [ "$(basename "$1")" = hce_perf ]; then
        "$1" reduce_kernel --help </dev/null
    fi
}

for page in "$srcdir"/man/*.1; do
    program=$(basename "$page" .1)
    binary=$(find "$builddir" -maxdepth 2 -name "$program" -type f | head -n 1)
    if [ -z "$binary" ]; then
        complain "$page describes a program that is not built"
        continue
    fi
    help_of "$binary" | options >"$TMPDIR/help"
    [ -s "$TMPDIR/help" ] || complain "$program --help has no options"
    sed -e 's/\\-/-/g' -e '/^\.\\"/d' "$page" | grep -E '^\.(B|BI|BR) ' |
        options >"$TMPDIR/page"
    diff -u "$TMPDIR/help" "$TMPDIR/page" ||
        complain "$program: --help (-) and its page (+) differ"
done

calls=$(grep -c '^HCE_PUBLIC' "$srcdir/include/hce/hce.h")
pages=$(find man -name 'hce_*.3' | wc -l)
[ "$calls" -eq "$pages" ] || complain "$calls public calls, $pages pages"

if command -v groff >/dev/null; then
    for page in "$srcdir"/man/*.[17] man/*.3; do
        text=$(groff -man -ww -z "$page" 2>&1)
        [ -z "$text" ] || complain "$text"
    done
else
    echo "roff's own check is left out: groff is not installed"
fi
[ $bad -eq 0 ] && echo "$pages pages of section 3 and the others are in order"
