#!/usr/bin/env bash
# Builds the library and the C kernel: examples/c/build.sh [folder]; prints the kernel's path. For the target `x86_64-unknown-none`
# where that is installed (`rustup target add`), else for the host without vector instructions; MTRR_PAT_C_TARGET picks one.
set -euo pipefail
cd "$(dirname "$0")"
out=${1:-target}
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
target=${MTRR_PAT_C_TARGET:-x86_64-unknown-none}
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    target=x86_64-unknown-linux-gnu
fi
flags="-Crelocation-model=static -Ccode-model=kernel"
if [ "$target" = x86_64-unknown-linux-gnu ]; then
    flags="$flags -Cno-redzone=yes -Cforce-unwind-tables=no -Ctarget-feature=-sse,-sse2"
fi
RUSTFLAGS="$flags" cargo build --quiet --release --target "$target" --target-dir "$out" >&2
cc=${CC:-cc}
options="-std=c11 -O2 -ffreestanding -mno-red-zone -mgeneral-regs-only -fno-pic -mcmodel=kernel -fno-stack-protector
    -fno-asynchronous-unwind-tables -Wall -Wextra -Werror -Wno-misleading-indentation"
$cc $options -c kernel/kernel.c -o "$out/kernel.o"
$cc -c kernel/boot.s -o "$out/boot.o"
ld -n -static -T kernel/kernel.ld --gc-sections --build-id=none -z max-page-size=4096 -z noexecstack \
    "$out/boot.o" "$out/kernel.o" "$out/$target/release/libmtrr_pat_c.a" -o "$out/kernel.elf"
echo "$PWD/$out/kernel.elf"
