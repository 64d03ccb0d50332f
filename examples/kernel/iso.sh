#!/bin/sh
# Makes a bootable image of the kernel, for a PC (or for an emulator without -kernel):
#   examples/kernel/iso.sh kernel.iso [WORD...]         screen: everything one has to know is on the screen; GFX=text: as text
# Needs grub-mkrescue (with grub-pc-bin, and grub-efi-amd64-bin for UEFI), xorriso and mtools. Write it to a USB stick with dd.
set -eu
image=$(realpath "$1")
shift
cd "$(dirname "$0")"
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_RUSTFLAGS CARGO_BUILD_TARGET
cargo build --release --quiet --target-dir target

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/boot/grub"
strip -o "$tree/boot/kernel" target/x86_64-unknown-linux-gnu/release/kernel
# A picture is for those who look at it. The loader takes what is set last: after the kernel's own wish.
case " $* " in *" screen "*) mode=${GFX:-1024x768x32,1024x768,auto} ;; *) mode=text ;; esac
cat > "$tree/boot/grub/grub.cfg" <<CFG
set timeout=0
insmod all_video
menuentry "mtrr-pat kernel" {
    multiboot2 /boot/kernel wake=rtc $*
    set gfxpayload=$mode
    boot
}
CFG
grub-mkrescue -o "$image" "$tree" 2>/dev/null
