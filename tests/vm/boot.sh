#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Boots the machine that prepare.sh made, runs a command in the current
# folder, with the host's files under its feet and nothing that it writes
# kept, shows its output, and exits with its status.
#   boot.sh FOLDER SECONDS NAME=VALUE... -- COMMAND [ARG...]
# 123: no soft-RoCE devices. 124: the time is over. 125: the machine died.
# The processor is emulated: nested virtual machines are not to be relied on.
set -u
here=$(cd "$(dirname "$0")" && pwd)
folder=$1 seconds=$2
shift 2
job=$(mktemp -d "${TMPDIR:-/tmp}/hce-vm.XXXXXX") || exit 125
trap 'rm -rf "$job"' EXIT
{
    printf 'folder=%q\n' "$PWD"
    while [ "$1" != -- ]; do
        printf 'export %q\n' "$1"
        shift
    done
    shift
    printf 'command=('
    printf '%q ' "$@"
    echo ')'
} >"$job/env"
cp "$here/guest_main.sh" "$job"

append='console=ttyS0 quiet loglevel=4 panic=-1 oops=panic tsc=reliable'
append+=' no_timer_check mitigations=off audit=0 random.trust_cpu=on'
shared() { # TAG PATH [OPTION]
    printf '%s\n' -fsdev "local,id=$1,path=$2,security_model=none$3" \
        -device "virtio-9p-pci,fsdev=$1,mount_tag=$1"
}
mapfile -t shares < <(
    shared host / ,readonly=on,multidevs=remap
    shared job "$job" ''
)
mkfifo "$job/pipe"
cat "$job/pipe" &
# The machine goes with this script, even if that is killed.
setpriv --pdeathsig KILL timeout --foreground -k 5 "$seconds" \
    setpriv --pdeathsig KILL qemu-system-x86_64 -nodefaults -no-user-config \
    -display none -no-reboot -machine q35,hpet=off \
    -accel tcg,thread=multi,tb-size=512 -cpu max -smp 2 -m 2G \
    -kernel "$folder/vmlinux" -initrd "$folder/initrd" -append "$append" \
    -serial "file:$job/console" -nic none \
    -device isa-debug-exit,iobase=0x501,iosize=1 -device virtio-rng-pci \
    -device virtio-serial-pci -chardev file,id=out,path="$job/pipe" \
    -device virtserialport,chardev=out,name=out "${shares[@]}" \
    </dev/null >"$job/qemu" 2>&1
ended=$?
wait
if [ -s "$job/status" ]; then
    exit "$(cat "$job/status")"
fi
echo "boot.sh: the guest left no status; qemu ended with $ended:"
tail -n 5 "$job/qemu"
tail -n 20 "$job/console" 2>/dev/null
[ "$ended" -eq 124 ] || [ "$ended" -eq 137 ] && exit 124
exit 125
