#!/bin/sh
# Optional: boots the kernel example from an image under UEFI firmware (OVMF) and lets it sleep, early and deferred; SeaBIOS boots the
# same image. Says "ALL DONE" last and exits with 0 when every run did.
# Needs Debian's qemu-system-x86, ovmf, grub-efi-amd64-bin, grub-pc-bin, xorriso and mtools.
set -eu
cd "$(dirname "$0")/.."

code=/usr/share/OVMF/OVMF_CODE_4M.fd
vars=/usr/share/OVMF/OVMF_VARS_4M.fd
for needed in "$code" "$vars"; do
    [ -r "$needed" ] || { echo "uefi.sh: no $needed: install ovmf" >&2; exit 2; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() { # name, words for the kernel, options for QEMU
    name=$1
    words=$2
    shift 2
    # shellcheck disable=SC2086
    examples/kernel/iso.sh "$work/kernel.iso" $words
    status=0
    timeout 300 qemu-system-x86_64 -nodefaults -display none -no-reboot -m 512M -machine q35 -accel tcg -cpu qemu64,vendor=GenuineIntel \
        -smp 4,cores=2,threads=2 -serial "file:$work/log" -device isa-debug-exit,iobase=0xf4,iosize=4 -cdrom "$work/kernel.iso" "$@" || status=$?
    if [ "$status" -ne 33 ] || ! grep -q '^ALL DONE differ=0' "$work/log"; then
        tail -n 40 "$work/log" >&2
        echo "uefi.sh: $name, $words: exit status $status" >&2
        exit 1
    fi
    echo "ok    $name, $words"
}

for mode in early deferred; do
    cp "$vars" "$work/vars.fd"
    run OVMF "rounds=3 resync=$mode" -drive "if=pflash,format=raw,readonly=on,file=$code" -drive "if=pflash,format=raw,file=$work/vars.fd"
    run SeaBIOS "rounds=3 resync=$mode"
done
echo "ALL DONE"
