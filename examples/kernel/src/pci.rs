//! The PCI bus: finding the display adapter's memory, and one repair.
//!
//! The repair: QEMU's q35 machine comes out of S3 with the power-management ports of its ICH9 bridge switched off, because SeaBIOS
//! sets them up at boot only. Firmware of real machines does it at wake as well; writing the same values is harmless.

use core::ops::Range;
use x86_64::instructions::port::Port;

/// Bus 0, device 31, function 0: the LPC bridge of Intel chipsets.
const BRIDGE: Function = Function(31 << 11);
const ICH9: u32 = 0x2918_8086;
const PMBASE: u32 = 0x40;
const ACPI_CONTROL: u32 = 0x44;

const NOBODY: u16 = 0xffff;
const COMMAND: u32 = 0x04;
const DECODE: u32 = 0b11;
const CLASS: u32 = 0x08;
const DISPLAY: u32 = 0x03;
const HEADER: u32 = 0x0c;
const MULTI_FUNCTION: u32 = 1 << 23;
const BAR: u32 = 0x10;

/// PMBASE and ACPI_CNTL of the bridge, if it is that one.
pub struct PowerRegisters(Option<[u32; 2]>);

pub fn save_power_registers() -> PowerRegisters {
    let saved = || [BRIDGE.read(PMBASE), BRIDGE.read(ACPI_CONTROL)];
    PowerRegisters((BRIDGE.read(0) == ICH9).then(saved))
}

impl PowerRegisters {
    pub fn restore(&self) {
        if let Some([base, control]) = self.0 {
            BRIDGE.write(PMBASE, base);
            BRIDGE.write(ACPI_CONTROL, control);
        }
    }
}

/// The frame buffer: the largest prefetchable memory range of a display adapter. On a machine without one, none.
///
/// The adapter's ranges are switched off for a moment, to be measured.
pub fn framebuffer() -> Option<Range<u64>> {
    let displays = functions().filter(|function| function.read(CLASS) >> 24 == DISPLAY);
    displays
        .filter_map(Function::frame_memory)
        .max_by_key(|range| range.end - range.start)
}

/// Every function on every bus. Only the first of a device is asked for, unless it says there are more.
fn functions() -> impl Iterator<Item = Function> {
    let there = |function: &Function| function.read(0) as u16 != NOBODY;
    let devices = (0..1u32 << 13).map(|device| Function(device << 11));
    devices.filter(there).flat_map(move |device| {
        let more = device.read(HEADER) & MULTI_FUNCTION != 0;
        let functions = (0..if more { 8 } else { 1 }).map(move |n| Function(device.0 | n << 8));
        functions.filter(there)
    })
}

/// Bus, device and function, as the configuration address port takes them.
#[derive(Clone, Copy)]
struct Function(u32);

impl Function {
    fn select(self, register: u32) {
        // SAFETY: the configuration address port; only the boot CPU uses the pair.
        unsafe { Port::<u32>::new(0xcf8).write(1 << 31 | self.0 | register) };
    }

    fn read(self, register: u32) -> u32 {
        self.select(register);
        // SAFETY: reads the selected register, which has no side effect.
        unsafe { Port::<u32>::new(0xcfc).read() }
    }

    /// For values a register had before, and the all-ones that measure a BAR while decoding is off.
    fn write(self, register: u32, value: u32) {
        self.select(register);
        // SAFETY: as said above.
        unsafe { Port::<u32>::new(0xcfc).write(value) };
    }

    fn frame_memory(self) -> Option<Range<u64>> {
        let command = self.read(COMMAND);
        // The status half is write-one-to-clear: zeros leave it alone.
        self.write(COMMAND, command & 0xffff & !DECODE);
        let mut largest: Option<Range<u64>> = None;
        let mut bar = BAR;
        while bar < BAR + 6 * 4 {
            let low = self.read(bar);
            let wide = low & 0b111 == 0b100;
            if low & 0b1001 == 0b1000 {
                let range = self.measure(bar, wide);
                let longer = |found: &Range<u64>| found.end - found.start < range.end - range.start;
                if range.start != 0 && largest.as_ref().is_none_or(longer) {
                    largest = Some(range);
                }
            }
            bar += if wide { 8 } else { 4 };
        }
        self.write(COMMAND, command & 0xffff);
        largest
    }

    fn measure(self, bar: u32, wide: bool) -> Range<u64> {
        let half = |register| {
            let value = self.read(register);
            self.write(register, !0);
            let size_bits = self.read(register);
            self.write(register, value);
            (u64::from(value), u64::from(size_bits))
        };
        let (low, low_bits) = half(bar);
        let (high, high_bits) = if wide {
            half(bar + 4)
        } else {
            (0, 0xffff_ffff)
        };
        let start = high << 32 | low & !0xf;
        let bytes = !(high_bits << 32 | low_bits & !0xf) + 1;
        start..start + bytes
    }
}
