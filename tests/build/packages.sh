#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# --with-x=yes|no|DIR|guess: what is found is used, what cannot be met is an
# error that says why, what was only guessed is left out. A made-up library
# takes jansson's place.
. "$srcdir/tests/build/lib.sh"

cc=${CC:-cc}
# fake DIR: a package below DIR that links, without a .pc file.
fake() {
    mkdir -p "$1/include" "$1/lib/pkgconfig"
    echo 'char *json_dumps(const void *json, unsigned long flags);' \
        >"$1/include/jansson.h"
    echo 'char *json_dumps(const void *json, unsigned long flags)
          { return (char *)json + flags; }' >"$work/fake.c"
    $cc -shared -fPIC -o "$1/lib/libjansson.so" "$work/fake.c"
}

# pc DIR LIBS: a .pc file for it.
pc() {
    printf '%s\n' 'Name: jansson' 'Description: made up' 'Version: 2.99' \
        "Cflags: -I$1/include -DFROM_PC" "Libs: $2" \
        >"$1/lib/pkgconfig/jansson.pc"
}

others=(--without-ucx --without-verbs --without-pmix --without-hwloc --without-cmocka)

found() {
    has '^#define HCE_HAVE_JANSSON 1$' "$work/$1/config.h"
    has '^ *jansson +yes ' "$work/$1.out"
}

dropped() {
    has '^/\* #undef HCE_HAVE_JANSSON \*/$' "$work/$1/config.h"
    has "^ *jansson +no +$2" "$work/$1.out"
}

refused() {
    local name=$1 text=$2

    shift 2
    ! configure_in "$name" "${others[@]}" "$@" || fail "$* was accepted"
    has "$text" "$work/$name.out"
}

echo '== no'
configure_in no "${others[@]}" --with-jansson=no
dropped no 'switched off by --without-jansson'

echo '== a folder without a .pc file'
fake "$work/plain"
configure_in plain "${others[@]}" --with-jansson="$work/plain"
found plain
has "^JANSSON_CFLAGS = -I$work/plain/include$" "$work/plain/Makefile"
has "^HCE_LDFLAGS = +-Wl,-rpath,$work/plain/lib$" "$work/plain/Makefile"

echo '== a folder with a .pc file'
fake "$work/pc"
pc "$work/pc" "-L$work/pc/lib -ljansson"
configure_in pc "${others[@]}" --with-jansson="$work/pc"
found pc
has '^JANSSON_CFLAGS = .*-DFROM_PC' "$work/pc/Makefile"

echo '== a folder whose .pc file is wrong'
fake "$work/wrong"
pc "$work/wrong" '-L/nowhere -lnonexistent'
configure_in wrong "${others[@]}" --with-jansson="$work/wrong"
found wrong
has "^JANSSON_CFLAGS = -I$work/wrong/include$" "$work/wrong/Makefile"

echo '== flags given by the user'
configure_in given "${others[@]}" JANSSON_CFLAGS="-I$work/plain/include" \
    JANSSON_LIBS="-L$work/plain/lib -ljansson" --with-jansson
found given

echo '== guess'
configure_in guess "${others[@]}" JANSSON_LIBS=-lnonexistent
dropped guess 'nothing links with the flags given'

echo '== what cannot be met'
refused yes 'error: --with-jansson=yes cannot be met: nothing links' \
    --with-jansson JANSSON_LIBS=-lnonexistent
refused nowhere '=/nowhere cannot be met: there is no folder /nowhere' \
    --with-jansson=/nowhere
mkdir -p "$work/empty/lib"
refused empty 'cannot be met: no jansson.pc or <jansson.h> that links below' \
    --with-jansson="$work/empty"
refused both 'exclude each other' --enable-asan --enable-tsan
