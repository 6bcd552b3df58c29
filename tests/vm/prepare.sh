#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Makes what the virtual machine of tests/vm boots from: a kernel of Debian
# with its modules, unpacked and not installed, and an initial file system
# with busybox and the modules for the host's files and soft-RoCE. What is
# there is not made again.
#   prepare.sh FOLDER
# Exit status 77, with the reason, where it cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
meta=linux-image-amd64

skip() {
    echo "skipped: no virtual machine: $*"
    exit 77
}

[ "$(uname -m)" = x86_64 ] || skip "this is not x86-64"
PATH=$PATH:/usr/sbin:/sbin
for tool in qemu-system-x86_64 busybox cpio depmod modprobe xz rdma setpriv; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done
! ldd "$(command -v busybox)" >/dev/null 2>&1 ||
    skip "busybox is not a static one"
mkdir -p "$folder"
cd "$folder"

fetch() {
    local package

    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
        skip "no kernel package without apt and dpkg"
    package=$(apt-cache depends $meta 2>/dev/null |
        sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    [ -n "$package" ] || skip "apt knows no $meta"
    apt-get -q download "$package" >fetch.log 2>&1 ||
        skip "apt-get download $package: $(tail -n 1 fetch.log)"
    rm -rf kernel.new
    dpkg-deb -x "${package}"_*.deb kernel.new
    rm -f "${package}"_*.deb
    mv kernel.new kernel
}

[ -d kernel ] || fetch
version=$(basename kernel/lib/modules/*)
[ -f "kernel/lib/modules/$version/modules.dep" ] ||
    depmod -b "$PWD/kernel" "$version"

# The guest is slow: unpack the kernel for it (its PVH entry boots an ELF
# file as it is).
if [ ! -f vmlinux ]; then
    image=kernel/boot/vmlinuz-$version
    offset=$(LC_ALL=C grep -abom1 -P '\xfd7zXZ\x00' "$image" | cut -d : -f 1)
    [ -n "$offset" ] || skip "the kernel $version is not packed by xz"
    tail -c +$((offset + 1)) "$image" | xz -dcq --single-stream \
        >vmlinux.new 2>/dev/null || [ -s vmlinux.new ]
    mv vmlinux.new vmlinux
fi

[ initrd -nt "$here/prepare.sh" ] && [ initrd -nt "$here/guest_init.sh" ] &&
    exit 0
rm -rf tree
mkdir -p tree/{bin,modules,proc,sys,dev,lower,upper,root}
cp "$(command -v busybox)" tree/bin/busybox
cp "$here/guest_init.sh" tree/init
chmod +x tree/init
for module in virtio_pci virtio_console 9pnet_virtio 9p overlay veth bridge \
    sch_netem crc32_generic rdma_rxe ib_uverbs rdma_ucm; do
    modprobe -d "$PWD/kernel" -S "$version" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >modules
while read -r file; do
    cp "$file" tree/modules/
    basename "$file"
done <modules >tree/modules/order
(cd tree && find . | cpio -o -H newc --quiet) >initrd.new
mv initrd.new initrd
