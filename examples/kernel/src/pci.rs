//! One repair on the PCI bus: QEMU's q35 machine comes out of S3 with the power-management ports of its ICH9 bridge switched off,
//! because SeaBIOS sets them up at boot only. Firmware of real machines does it at wake as well; writing the same values is harmless.

use x86_64::instructions::port::Port;

/// Bus 0, device 31, function 0: the LPC bridge of Intel chipsets.
const BRIDGE: u32 = 31 << 11;
const ICH9: u32 = 0x2918_8086;
const PMBASE: u32 = 0x40;
const ACPI_CONTROL: u32 = 0x44;

/// PMBASE and ACPI_CNTL of the bridge, if it is that one.
pub struct PowerRegisters(Option<[u32; 2]>);

pub fn save_power_registers() -> PowerRegisters {
    PowerRegisters((read(0) == ICH9).then(|| [read(PMBASE), read(ACPI_CONTROL)]))
}

impl PowerRegisters {
    pub fn restore(&self) {
        if let Some([base, control]) = self.0 {
            write(PMBASE, base);
            write(ACPI_CONTROL, control);
        }
    }
}

fn select(register: u32) {
    // SAFETY: the configuration address port; only the boot CPU uses the pair.
    unsafe { Port::<u32>::new(0xcf8).write(1 << 31 | BRIDGE | register) };
}

fn read(register: u32) -> u32 {
    select(register);
    // SAFETY: reads the selected register, which has no side effect.
    unsafe { Port::<u32>::new(0xcfc).read() }
}

fn write(register: u32, value: u32) {
    select(register);
    // SAFETY: a value the register had before.
    unsafe { Port::<u32>::new(0xcfc).write(value) };
}
