//! What the kernel needs from the ACPI tables: the CPUs, and the registers for sleeping.

use crate::percpu;
use acpi::address::AddressSpace;
use acpi::fadt::Fadt;
use acpi::madt::{Madt, MadtEntry};
use acpi::{AcpiHandler, AcpiTables, AmlTable, PhysicalMapping};
use core::ptr::NonNull;

/// Fixed hardware of the machine. Ports are 0 where there is none.
pub struct Firmware {
    /// Address of the FACS, which holds the waking vector.
    pub facs: usize,
    pub pm1a_event: u16,
    pub pm1a_control: u16,
    pub pm1b_control: u16,
    /// Length of the event block: status register in the first half, enable register in the second.
    pub pm1_event_bytes: u16,
    pub pm_timer: u16,
    pub smi_command: u16,
    pub acpi_enable: u8,
    /// Port and value that restart the machine.
    pub reset: Option<(u16, u8)>,
    /// SLP_TYP values of S3 for PM1a and PM1b, from the `_S3` package.
    pub s3: Option<[u8; 2]>,
}

/// Tables live in memory that is mapped one to one.
#[derive(Clone)]
struct Identity;

impl AcpiHandler for Identity {
    unsafe fn map_physical_region<T>(
        &self,
        physical_address: usize,
        size: usize,
    ) -> PhysicalMapping<Self, T> {
        let Some(pointer) = NonNull::new(physical_address as *mut T) else {
            panic!("ACPI table at address 0")
        };
        // SAFETY: memory below 4 GiB is mapped one to one, for ever.
        unsafe { PhysicalMapping::new(physical_address, pointer, size, size, self.clone()) }
    }

    fn unmap_physical_region<T>(_: &PhysicalMapping<Self, T>) {}
}

impl Firmware {
    /// Reads the tables and lists the CPUs (boot CPU first). `rsdp` is 0 if the loader did not say.
    pub fn read(rsdp: usize) -> Self {
        let tables = if rsdp != 0 {
            // SAFETY: the loader's word.
            unsafe { AcpiTables::from_rsdp(Identity, rsdp) }
        } else {
            // SAFETY: a BIOS machine, by the loader's silence; the area is mapped.
            unsafe { AcpiTables::search_for_rsdp_bios(Identity) }
        };
        let tables = tables.unwrap_or_else(|error| panic!("ACPI tables: {error:?}"));
        list_cpus(&tables);
        fixed_hardware(&tables)
    }
}

fn fixed_hardware(tables: &AcpiTables<Identity>) -> Firmware {
    let fadt = tables
        .find_table::<Fadt>()
        .unwrap_or_else(|error| panic!("FADT: {error:?}"));
    let event = fadt.pm1a_event_block().ok();
    let aml = tables.dsdt().ok();
    Firmware {
        facs: fadt.facs_address().unwrap_or(0),
        pm1a_event: event.map_or(0, |block| block.address as u16),
        pm1a_control: fadt
            .pm1a_control_block()
            .map_or(0, |block| block.address as u16),
        pm1b_control: fadt
            .pm1b_control_block()
            .ok()
            .flatten()
            .map_or(0, |block| block.address as u16),
        pm1_event_bytes: event.map_or(4, |block| u16::from(block.bit_width / 8)),
        pm_timer: fadt
            .pm_timer_block()
            .ok()
            .flatten()
            .map_or(0, |block| block.address as u16),
        smi_command: fadt.smi_cmd_port as u16,
        acpi_enable: fadt.acpi_enable,
        reset: (fadt.reset_register().ok())
            .filter(|register| register.address_space == AddressSpace::SystemIo)
            .map(|register| (register.address as u16, fadt.reset_value))
            .filter(|&(port, _)| port != 0),
        s3: aml.as_ref().map(stream).and_then(find_s3),
    }
}

/// The bytes of a table of AML.
fn stream(aml: &AmlTable) -> &'static [u8] {
    // SAFETY: the table lies in mapped memory, with the length its header gives, and stays there.
    unsafe { core::slice::from_raw_parts(aml.address as *const u8, aml.length as usize) }
}

/// Lists every enabled CPU; the boot CPU, wherever the table has it, becomes number 0.
fn list_cpus(tables: &AcpiTables<Identity>) {
    let boot = boot_apic_id();
    percpu::add(boot);
    let madt = tables
        .find_table::<Madt>()
        .unwrap_or_else(|error| panic!("MADT: {error:?}"));
    for entry in madt.get().entries() {
        let (id, flags) = match entry {
            MadtEntry::LocalApic(entry) => (u32::from(entry.apic_id), entry.flags),
            MadtEntry::LocalX2Apic(entry) => (entry.x2apic_id, entry.flags),
            _ => continue,
        };
        if flags & 1 != 0 && id != boot && !percpu::add(id) {
            crate::println!(
                "more than {} CPUs: the rest is left alone",
                percpu::MAX_CPUS
            );
            return;
        }
    }
}

/// As `trampoline.s` finds an AP's: leaf 0xB if there is one, else the eight bits of leaf 1.
fn boot_apic_id() -> u32 {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    if __cpuid(0).eax >= 0xb {
        let leaf = __cpuid_count(0xb, 0);
        if leaf.ebx != 0 {
            return leaf.edx;
        }
    }
    __cpuid(1).ebx >> 24
}

/// Finds `Name (_S3, Package () {a, b, ..})` in the byte code. Interpreting AML takes a heap and a crate many times this kernel's
/// size; the package is constant on every machine seen, and the encoding of it is fixed.
fn find_s3(aml: &[u8]) -> Option<[u8; 2]> {
    const PACKAGE: u8 = 0x12;
    let at = aml.windows(5).position(|window| window == b"_S3_\x12")? + 4;
    debug_assert_eq!(aml[at], PACKAGE);
    // Package length: the top two bits of its first byte say how many bytes follow; then the number of elements.
    let mut rest = aml.get(at + 1 + 1 + usize::from(aml.get(at + 1)? >> 6) + 1..)?;
    let mut number = || {
        let (&code, tail) = rest.split_first()?;
        let (value, used) = match code {
            0x00 | 0x01 => (code, 0),    // ZeroOp, OneOp
            0x0a => (*tail.first()?, 1), // a byte follows
            _ => return None,
        };
        rest = tail.get(used..)?;
        Some(value)
    };
    Some([number()?, number().unwrap_or(0)])
}
