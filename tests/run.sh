#!/usr/bin/env bash
# Installs what the tests need and runs all of them: the library with and without features, the
# models, and the real kernel under QEMU.
set -euo pipefail
cd "$(dirname "$0")/.."

# The kernel example's console wants a newer compiler than the library.
wanted=91
have=$(rustc --version 2>/dev/null | sed -n 's/^rustc 1\.\([0-9]*\).*/\1/p')
if ! command -v cargo >/dev/null || [ "${have:-0}" -lt "$wanted" ]; then
    echo "Rust 1.$wanted or newer is needed: install a stable toolchain with rustup first" >&2
    exit 1
fi
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "install by hand, or run as root: $*" >&2
        return 1
    fi
}
if ! command -v cc >/dev/null; then
    echo "installing a C linker"
    as_root apt-get update -qq
    as_root apt-get install -y -qq gcc libc6-dev
fi
if ! command -v qemu-system-x86_64 >/dev/null; then
    echo "installing QEMU"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        qemu-system-x86 seabios
fi
# Discs with the kernel for the tests of its screen, and firmware for UEFI.
if ! command -v grub-mkrescue >/dev/null || ! command -v xorriso >/dev/null || ! command -v mformat >/dev/null ||
    ! [ -d /usr/lib/grub/i386-pc ] || ! [ -d /usr/lib/grub/x86_64-efi ] || ! [ -d /usr/share/OVMF ]; then
    echo "installing GRUB's tools and OVMF"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        grub-common grub-pc-bin grub-efi-amd64-bin xorriso mtools ovmf
fi

# What the C library is built for; without it that is tried for the host target alone.
bare=x86_64-unknown-none
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$bare" ]; then
    rustup target add "$bare" 2>/dev/null || echo "not built: the C library for $bare, which cannot be installed here" >&2
fi

# A flag meant for somebody else's build would change what is tested.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS

cargo test --all-features
# Without features the shared words are plain atomics, and nothing else differs: the library's own
# tests once more, and whether everything compiles.
cargo test --lib -q
cargo check --all-targets -q
# The oldest Rust the library promises, where it is installed.
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if rustup toolchain list 2>/dev/null | grep -q "^$oldest"; then
    toolchain=$(rustup toolchain list | sed -n "s/^\($oldest[^ ]*\).*/\1/p" | head -n 1)
    cargo "+$toolchain" check -q --target-dir target/oldest
    cargo "+$toolchain" check -q --features sim --target-dir target/oldest
else
    echo "not run: the check with Rust $oldest, because it is not installed" >&2
fi
RUSTFLAGS="--cfg loom" cargo test --profile loom --lib --target-dir target/loom rendezvous::models

# A second opinion on memory types, where there is somebody to give it.
if command -v bochs >/dev/null && ls /usr/lib/*/bochs/plugins/libbx_term_gui.so >/dev/null 2>&1; then
    tests/bochs.sh corei7_skylake_x ryzen
else
    echo "not run: tests/bochs.sh, because Bochs with its text display (bochs-term) is not installed" >&2
fi
