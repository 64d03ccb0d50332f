#!/usr/bin/env bash
# Installs what the tests need and runs all of them: the library with and without features, the
# models, and the real kernel under QEMU.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v cargo >/dev/null; then
    echo "Rust is missing: install a stable toolchain (rustup) first" >&2
    exit 1
fi
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}
if ! command -v qemu-system-x86_64 >/dev/null; then
    echo "installing QEMU"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        qemu-system-x86 seabios
fi

# A flag meant for somebody else's build would change what is tested.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS

cargo test --all-features
MTRR_PAT_QEMU=skip cargo test --lib --tests -q
RUSTFLAGS="--cfg loom" cargo test --release --lib --target-dir target/loom rendezvous::models

# A second opinion on memory types, where there is somebody to give it.
if command -v bochs >/dev/null; then
    tests/bochs.sh corei7_skylake_x ryzen
else
    echo "not run: tests/bochs.sh, because Bochs is not installed" >&2
fi
