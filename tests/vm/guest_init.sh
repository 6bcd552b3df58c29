#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# First process of the guest: the host's files, read-only, with memory laid
# over them for what is written; then guest_main.sh from there.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev

stop() {
    echo "guest_init: $*"
    $b sleep 1
    $b reboot -f
}

plan9="trans=virtio,version=9p2000.L,msize=512000"
for module in $($b cat /modules/order); do
    $b insmod "/modules/$module" || stop "no module $module"
done
$b mount -t 9p -o "$plan9,cache=loose,ro" host /lower || stop "no host files"
$b mount -t tmpfs -o size=75% upper /upper
$b mkdir /upper/data /upper/work
$b mount -t overlay -o \
    lowerdir=/lower,upperdir=/upper/data,workdir=/upper/work overlay /root ||
    stop "no overlay"
for folder in proc sys dev; do
    $b mount --move /$folder /root/$folder
done
$b mkdir -p /root/dev/shm /root/dev/pts
$b mount -t tmpfs -o mode=1777 shm /root/dev/shm
$b mount -t devpts devpts /root/dev/pts
$b mount -t tmpfs -o mode=755 run /root/run
$b mount -t tmpfs -o mode=1777 tmp /root/tmp
$b mkdir /root/run/job
$b mount -t 9p -o "$plan9,cache=none,rw" job /root/run/job || stop "no job"
exec $b switch_root /root /bin/bash /run/job/guest_main.sh
