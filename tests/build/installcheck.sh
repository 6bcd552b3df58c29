#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Builds the examples against the installed tree, as a user of the library
# would, through pkg-config, and runs them: alone, as two processes that find
# each other by environment variables on the loopback, and under mpirun where
# the library was built for it.
#
# usage: installcheck.sh PKGCONFIG-DIR   (DESTDIR is respected; CC, srcdir)
set -eu
export PKG_CONFIG_PATH=${DESTDIR:-}$1
[ -z "${DESTDIR:-}" ] || export PKG_CONFIG_SYSROOT_DIR=$DESTDIR
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || :; rm -rf "$work"' EXIT
read -ra cc <<<"${CC:-cc}"
read -ra cflags <<<"${CFLAGS:-}"
read -ra flags <<<"$(pkg-config --cflags --libs hce)"
libdir=${DESTDIR:-}$(PKG_CONFIG_SYSROOT_DIR='' \
    pkg-config --variable=libdir hce)
bindir=${DESTDIR:-}$(PKG_CONFIG_SYSROOT_DIR='' \
    pkg-config --variable=exec_prefix hce)/bin
export LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

for source in "$srcdir"/examples/*.c; do
    example=$work/$(basename "$source" .c)
    "${cc[@]}" "${cflags[@]}" -Wall -Wextra -Werror "$source" -o "$example" \
        "${flags[@]}"
    echo "built $(basename "$source")"
done

"$work/allgather" alone

# A port that was free a moment ago; if it is taken the library tries the
# next ones.
export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1
export MASTER_PORT=$((20000 + $$ % 10000))
RANK=0 LOCAL_RANK=0 timeout 60 "$work/allgather" &
first=$!
RANK=1 LOCAL_RANK=1 timeout 60 "$work/allgather"
wait "$first"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT

if ! "$bindir/hce_info" | grep -Eq '^ *pmix +yes' ||
    ! command -v mpirun.openmpi >/dev/null; then
    echo "not run under mpirun: there is no PMIx or no mpirun.openmpi"
else
    root=()
    [ "$(id -u)" -ne 0 ] || root=(--allow-run-as-root)
    timeout 60 mpirun.openmpi "${root[@]}" --oversubscribe -n 2 \
        "$work/allgather"
fi
echo "installcheck: the examples run against $libdir"
