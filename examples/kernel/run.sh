#!/bin/sh
# Boots the kernel once, by hand, with its log on the terminal:
#   examples/kernel/run.sh [MACHINE [SMP [WORD...]]]      e.g.  run.sh q35 8,cores=4,threads=2 resync=deferred rounds=3
# The machine sleeps and is woken by its own clock after two seconds. The exit code is 0 when the kernel says ALL DONE.
set -eu
cd "$(dirname "$0")"
machine=${1:-pc}
smp=${2:-4}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] && shift

# Flags from outside would replace the kernel's own.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_RUSTFLAGS CARGO_BUILD_TARGET
cargo build --release --quiet --target-dir target

status=0
qemu-system-x86_64 -nodefaults -display none -no-reboot -m 512M -machine "$machine" -accel "${ACCEL:-tcg}" -smp "$smp" \
    -serial stdio -device isa-debug-exit,iobase=0xf4,iosize=4 \
    -kernel target/x86_64-unknown-linux-gnu/release/kernel -append "wake=rtc $*" || status=$?
[ "$status" -eq 33 ]
