#!/usr/bin/env bash
# Compares the crate's memory types with those of the Bochs emulator, which prints the type of each access:
#   tests/bochs.sh [CPU-MODEL...]        default: corei7_skylake_x; a table on the terminal, exit code 0 when every defined cell agrees
# The kernel (examples/kernel, oracle=types) programs the registers, says what the crate expects, and touches the memory;
# tests/bochs_compare.py puts both logs side by side. Debian: bochs bochsbios vgabios bochs-term grub-pc-bin mtools xorriso bsdutils.
# A machine without Bochs is told so and fails; MTRR_PAT_BOCHS=skip leaves it out.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${MTRR_PAT_BOCHS:-}" = skip ]; then
    echo "SKIPPED: the comparison with Bochs, because MTRR_PAT_BOCHS=skip" >&2
    exit 0
fi
for tool in bochs grub-mkrescue xorriso mformat script python3; do
    command -v "$tool" >/dev/null || { echo "$tool is missing; see the head of $0" >&2; exit 2; }
done
bios=${BOCHS_BIOS:-/usr/share/bochs/BIOS-bochs-latest}
vga=${BOCHS_VGA_BIOS:-/usr/share/vgabios/vgabios.bin}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
examples/kernel/iso.sh "$scratch/kernel.iso" oracle=types rounds=0 quiet

status=0
for model in "${@:-corei7_skylake_x}"; do
    cat > "$scratch/bochsrc" <<RC
config_interface: textconfig
display_library: term
cpu: model=$model, count=1, ips=50000000, reset_on_triple_fault=0, ignore_bad_msrs=0
memory: guest=512, host=512
romimage: file=$bios
vgaromimage: file=$vga
ata0-master: type=cdrom, path=$scratch/kernel.iso, status=inserted
boot: cdrom
sound: waveoutdrv=dummy, waveindrv=dummy, midioutdrv=dummy
log: $scratch/bochs.log
panic: action=fatal
magic_break: enabled=1
com1: enabled=1, mode=file, dev=$scratch/serial
RC
    # Every touch stands between two magic breaks: tracing is on only there. More pairs than touches do no harm.
    { for _ in $(seq 500); do printf 'c\ntrace-mem on\nc\ntrace-mem off\n'; done; echo c; } > "$scratch/commands"
    : > "$scratch/serial"
    timeout "${BOCHS_SECONDS:-600}" script -qc "bochs -q -f $scratch/bochsrc -rc $scratch/commands" "$scratch/trace" \
        </dev/null >/dev/null 2>&1 || true
    if [ -n "${BOCHS_KEEP:-}" ]; then
        mkdir -p "$BOCHS_KEEP"
        cp "$scratch"/{serial,trace,bochs.log} "$BOCHS_KEEP"
    fi
    python3 tests/bochs_compare.py "$model" "$scratch/serial" "$scratch/trace" || status=1
done
exit $status
