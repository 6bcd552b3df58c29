#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# The header's public calls, the version map and the symbols of the built
# library are one list; the header's version is the one of VERSION.
set -eu
header=$srcdir/include/hce/hce.h
map=$srcdir/lib/libhce.map
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Every prototype must be HCE_PUBLIC, so both ways to find them agree.
public_calls() {
    awk '/^HCE_PUBLIC/, /;/' "$1" | grep -o '\bhce_[a-z0-9_]*(' |
        tr -d '(' | sort
}

all_calls() {
    # Without comments; the preprocessor drops them.
    ${CC:-cc} -E -P -I "$srcdir/include" "$1" | tr '\n' ' ' |
        tr ';{}' '\n\n\n' | grep -v 'typedef' |
        grep -o '\bhce_[a-z0-9_]* *(' | tr -d ' (' | sort
}

same() {
    diff -u "$work/$1" "$work/$2" || {
        echo "exports.sh: $1 (-) and $2 (+) differ"
        exit 1
    }
}

public_calls "$header" >"$work/public"
all_calls "$header" >"$work/prototypes"
sed -n '/global:/,/local:/s/^ *\([a-z0-9_]*\);$/\1/p' "$map" >"$work/map"
test -s "$work/public"
same prototypes public
same public map

# nm names a versioned symbol NAME@@VERSION, and the version node itself.
${NM:-nm} -D --defined-only .libs/libhce.so | awk '{ print $NF }' |
    grep -vx 'HCE_0' | sort >"$work/symbols"
sed 's/$/@@HCE_0/' "$work/map" >"$work/versioned"
same versioned symbols

. "$srcdir/VERSION"
api=$(sed -n 's/^#define HCE_API_M[AI][JN]OR \([0-9]*\)$/\1/p
              s/^#define HCE_API_PATCH \([0-9]*\)$/\1/p' "$header" |
    paste -s -d .)
if [ "$api" != "$VERSION" ]; then
    echo "exports.sh: hce.h says version $api, VERSION $VERSION"
    exit 1
fi
echo "$(wc -l <"$work/map") public calls"
