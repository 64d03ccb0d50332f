#!/bin/sh
# Runs `inspect --live` in a real Linux guest under QEMU: 4 CPUs, two threads per core.
#
# Checks that it reports the registers the guest's own rdmsr shows, that all CPUs are in sync at
# boot and after S3, that a CPU de-synced with wrmsr is named with its group, and that the guest's
# kernel accepts every /proc/mtrr line inspect proposes and ends up with the promised map.
#
# Needs: qemu-system-x86_64, apt-get (Debian or Ubuntu: the guest is Debian's kernel, busybox and
# msr-tools, unpacked in tests/.work), or their .deb files in tests/.work/linux-guest/debs.
# Optional in CI. Exit code: 0 all checks passed, 1 one failed, 77 something needed is missing.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
work=$root/tests/.work/linux-guest
missing() { echo "linux-guest: $1" >&2; exit 77; }

command -v qemu-system-x86_64 > /dev/null || missing "qemu-system-x86_64 is not installed"
mkdir -p "$work/debs" "$work/unpacked"

# Packages: kernel, busybox, msr-tools.
cd "$work/debs"
if ! ls linux-image-*.deb busybox-static_*.deb msr-tools_*.deb > /dev/null 2>&1; then
    kernel=$(apt-cache depends linux-image-amd64 2> /dev/null | awk '/Depends: linux-image/ { print $2; exit }')
    [ -n "$kernel" ] || missing "no linux-image-amd64 package to be had"
    apt-get download "$kernel" busybox-static msr-tools > download.log 2>&1 || missing "$(tail -1 download.log)"
fi
cd "$work"
if [ ! -e unpacked/done ]; then
    for deb in debs/*.deb; do dpkg-deb -x "$deb" unpacked; done
    touch unpacked/done
fi
kernel=$(ls unpacked/boot/vmlinuz-* | head -1)
module=$(find unpacked -name 'msr.ko*' | head -1)
busybox=$(find unpacked -path '*bin/busybox' -type f | head -1)

# The program, and an initramfs with everything it needs.
cargo build --quiet --manifest-path "$root/Cargo.toml" --example inspect
inspect=${CARGO_TARGET_DIR:-$root/target}/debug/examples/inspect
rm -rf initramfs
mkdir -p initramfs/bin initramfs/dev initramfs/proc initramfs/sys initramfs/tmp
cp "$busybox" initramfs/bin/busybox
cp "$(find unpacked -name rdmsr -type f)" "$(find unpacked -name wrmsr -type f)" initramfs/bin/
cp "$inspect" initramfs/bin/inspect
strip initramfs/bin/inspect 2> /dev/null || true
case $module in
    *.xz) xz -dc "$module" > initramfs/msr.ko ;;
    *) cp "$module" initramfs/msr.ko ;;
esac
for library in $(ldd "$inspect" initramfs/bin/rdmsr | grep -o '/[^ ]*' | grep -v ':$' | sort -u); do
    mkdir -p "initramfs$(dirname "$library")"
    cp -L "$library" "initramfs$library"
done
cp "$root/tests/linux-guest-init.sh" initramfs/init
chmod +x initramfs/init
(cd initramfs && find . | "../$busybox" cpio -o -H newc) > initramfs.cpio 2> cpio.log || missing "$(tail -1 cpio.log)"

# One run, at most ten minutes on a busy machine. The guest's clock wakes it from S3.
log=$work/serial.log
: > "$log"
timeout "${LINUX_GUEST_TIMEOUT:-600}" qemu-system-x86_64 \
    -nodefaults -no-user-config -display none -no-reboot -serial "file:$log" \
    -machine pc -accel tcg -cpu max,vendor=GenuineIntel -m 1G -smp 4,cores=2,threads=2 \
    -kernel "$kernel" -initrd initramfs.cpio \
    -append "console=ttyS0 no_console_suspend loglevel=4 panic=-1" || true

tr -d '\r' < "$log" | grep -E '^(PASS|FAIL|INFO) ' || true
if tr -d '\r' < "$log" | grep -q '^GUEST DONE' && ! grep -q '^FAIL ' "$log"; then
    echo "linux-guest: all checks passed"
else
    tr -d '\r' < "$log" | tail -60
    echo "linux-guest: FAILED, the guest's whole output is in $log" >&2
    exit 1
fi
