#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Builds for aarch64 with Debian's cross compiler and runs the tests of units
# and plans and jobs of threads under qemu's user emulation. cmocka for aarch64
# comes from Debian's archive and is unpacked here: apt is given folders of its
# own, so that the machine's packages stay as they are.
. "$srcdir/tests/build/lib.sh"

host=aarch64-linux-gnu
sysroot=/usr/$host
unset CC
command -v $host-gcc >/dev/null || skip "$host-gcc is not installed"
command -v qemu-aarch64 >/dev/null || skip 'qemu-aarch64 is not installed'
test -f "$sysroot/lib/ld-linux-aarch64.so.1" ||
    skip "there is no C library in $sysroot"

# Into $work/arm64/usr; fails where there is no Debian archive to ask.
get_cmocka() {
    local apt=$work/apt options

    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$work/arm64"
    options=(-q -o APT::Architecture=arm64 -o APT::Architectures=arm64
        -o Dir::State="$apt" -o Dir::State::Lists="$apt/lists"
        -o Dir::State::status=/dev/null -o Dir::Cache="$apt/cache"
        -o Acquire::Languages=none -o Acquire::Retries=2
        -o Acquire::http::Timeout=20)
    [ "$(id -u)" -ne 0 ] || options+=(-o APT::Sandbox::User=root)
    cd "$apt" || return
    apt-get "${options[@]}" update &&
        apt-get "${options[@]}" download libcmocka-dev libcmocka0 || return
    for package in ./*.deb; do
        dpkg-deb -x "$package" "$work/arm64" || return
    done
    cd - >/dev/null
}

cmocka=yes
get_cmocka || cmocka=no
with_cmocka=--without-cmocka
[ $cmocka = no ] || with_cmocka=--with-cmocka=$work/arm64/usr

# The other packages are guessed: this machine's must not be taken.
configure_in build --enable-werror --host=$host "$with_cmocka"
make_in build all
file=$work/build/.libs/libhce.so
$host-readelf -h "$file" | grep -E 'Machine: *AArch64' ||
    fail "$file is for another machine"
emulate=(qemu-aarch64 -L "$sysroot")
# Emulation is slow: the limit of a test is higher.
check=(TEST_WRAPPER="${emulate[*]}" TEST_LIMIT=900)

echo '== plans'
plans=(tests/property/plan_{random,order,mutate})
make_in build check "${check[@]}" TESTS="${plans[*]}"

echo '== ranks that are threads'
for nodes in 1 2 4 3,1; do
    HCE_TRANSPORT=loop "${emulate[@]}" "$work/build/perf/hce_perf" all_gather \
        --ranks 4 --threads --nodes $nodes -b 1 -e 1M -f 29 -d int8 -n 3
done

echo '== units'
[ $cmocka = yes ] ||
    skip 'all else is well, but there is no cmocka for aarch64'
make_in build check-unit "${check[@]}"
