# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Second process of the guest: four soft-RoCE devices n1 to n4 on the ends p1
# to p4 of cables into one bridge, then the job's command. Its exit status
# goes into a file; 123 where the devices cannot be made.
exec </dev/null >/dev/ttyS0 2>&1
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LANG=C.UTF-8
. /run/job/env
for port in /sys/class/virtio-ports/*; do
    [ "$(cat "$port/name")" = out ] && out=/dev/${port##*/}
done

finish() {
    echo "$1" >/run/job/status.new
    dmesg >/run/job/dmesg
    mv /run/job/status.new /run/job/status
    sync
    # isa-debug-exit: qemu ends at once
    printf '\x01' | dd of=/dev/port bs=1 seek=$((0x501)) conv=notrunc
    sleep 5
    echo o >/proc/sysrq-trigger
}

# Run by "bash -e": in "f || ..." a function's errors would not end it.
devices() {
    local i

    sysctl -qw net.ipv4.conf.all.rp_filter=0
    ip link add br0 type bridge
    ip link set br0 up
    for i in 1 2 3 4; do
        ip link add p$i mtu 4200 type veth peer name b$i mtu 4200
        ip link set b$i master br0 up
        sysctl -qw net.ipv4.conf.p$i.accept_local=1 \
            net.ipv4.conf.p$i.rp_filter=0 net.ipv4.conf.p$i.arp_ignore=1
        ip addr add 198.51.100.$i/24 dev p$i
        ip link set p$i up
        rdma link add n$i type rxe netdev p$i
    done
    rdma link
}

hostname guest
ip link set lo up
ulimit -l unlimited
export -f devices
bash -ec devices >"$out" 2>&1 || finish 123
cd "$folder" || finish 123
setsid -w "${command[@]}" >"$out" 2>&1
finish $?
