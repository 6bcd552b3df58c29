# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# For tests that configure and build the project: a copy of the sources as
# they would be released, in $src, and a scratch folder, $work. Everything
# that runs is shown; the runner keeps it in the test's log.
set -eu -o pipefail
: "${srcdir:?}" "${builddir:?}" "${MAKE:=make}"
# What the make above said is not meant for the ones below.
unset MAKEFLAGS MFLAGS MAKELEVEL CFLAGS TESTS
work=$(mktemp -d)
# A distribution may have been made read-only.
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
src=$work/src
"$MAKE" -s -C "$builddir" distdir distdir="$src"

fail() {
    echo "$(basename "$0"): $*"
    exit 1
}

skip() {
    echo "SKIP: $*"
    exit 77
}

# configure_in DIR [ARGUMENT...]: output also in DIR.out.
configure_in() {
    local dir=$work/$1

    shift
    mkdir -p "$dir"
    (cd "$dir" && "$src/configure" --quiet "$@") 2>&1 | tee "$dir.out"
}

make_in() {
    local dir=$work/$1

    shift
    "$MAKE" -s -C "$dir" -j "$(nproc)" "$@"
}

# has LINE-PATTERN FILE
has() {
    grep -Eq -- "$1" "$2" || fail "no '$1' in $(basename "$2")"
}
