//! This machine, on Linux: the MSRs of every CPU, or what /proc shows of them.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::dump::{Dump, Vendor};
use super::read;

/// Reads this machine.
///
/// # Errors
/// What is missing, when neither the MSRs nor /proc/mtrr can be read.
pub fn read() -> Result<Dump, String> {
    let mut dump = proc_files(&["/proc/cpuinfo", "/proc/iomem"]);
    // /proc/cpuinfo has no registers: nothing here can be mistaken for some.
    match msrs(&mut dump) {
        Ok(()) => Ok(dump),
        Err(why) => {
            let mtrr = proc_files(&["/proc/mtrr", "/proc/cpuinfo", "/proc/iomem"]);
            if mtrr.is_empty() {
                return Err(format!("{why}; and /proc/mtrr says nothing either"));
            }
            let mut mtrr = mtrr;
            mtrr.notes
                .push(format!("{why}; taken from /proc/mtrr instead"));
            Ok(mtrr)
        }
    }
}

/// The files that can be read, as one dump.
fn proc_files(paths: &[&str]) -> Dump {
    let mut all: Box<dyn Read> = Box::new(io::empty());
    for path in paths {
        if let Ok(file) = File::open(path) {
            all = Box::new(all.chain(file).chain(&b"\n"[..]));
        }
    }
    read::read(&mut BufReader::new(all)).unwrap_or_default()
}

/// Adds the MSRs of every CPU.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn msrs(dump: &mut Dump) -> Result<(), String> {
    use mtrr_pat::ranges::FIXED_RANGES;
    use mtrr_pat::regs::{IORR_COUNT, MAX_VARIABLE, MsrAddr, MtrrCap};

    let mut numbers = cpu_numbers()?;
    numbers.sort_unstable();
    let amd = dump.vendor == Vendor::Amd;
    for cpu in &numbers {
        let file = open(*cpu)?;
        let mut keep = |msr: MsrAddr| -> Option<u64> {
            let value = rdmsr(&file, msr)?;
            super::read_msr::store_in(dump.cpu(*cpu), msr.0, value);
            Some(value)
        };
        let cap = keep(MsrAddr::MTRRCAP).map(MtrrCap::from_raw);
        keep(MsrAddr::PAT);
        if let Some(cap) = cap {
            keep(MsrAddr::MTRR_DEF_TYPE);
            for index in 0..usize::from(cap.vcnt()).min(MAX_VARIABLE) {
                keep(MsrAddr::phys_base(index));
                keep(MsrAddr::phys_mask(index));
            }
            if cap.contains(MtrrCap::FIX) {
                for range in FIXED_RANGES {
                    keep(range.msr);
                }
            }
        }
        if amd {
            for msr in [MsrAddr::SYSCFG, MsrAddr::TOP_MEM, MsrAddr::TOP_MEM2] {
                keep(msr);
            }
            for index in 0..IORR_COUNT {
                keep(MsrAddr::iorr_base(index));
                keep(MsrAddr::iorr_mask(index));
            }
        } else if has_tme() {
            keep(MsrAddr::TME_ACTIVATE);
        }
        if *cpu == numbers.first().copied().unwrap_or(0) {
            width(dump, &file);
        }
    }
    Ok(())
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn msrs(_dump: &mut Dump) -> Result<(), String> {
    Err("live mode reads /dev/cpu/*/msr, which only Linux on x86-64 has".into())
}

/// The CPUs that have an MSR device.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn cpu_numbers() -> Result<Vec<u32>, String> {
    let missing = "no /dev/cpu/0/msr: the kernel module \"msr\" is not loaded (modprobe msr)";
    let list = fs::read_dir("/dev/cpu").map_err(|_| missing.to_string())?;
    let numbers: Vec<u32> = list
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|cpu| Path::new(&format!("/dev/cpu/{cpu}/msr")).exists())
        .collect();
    if numbers.is_empty() {
        Err(missing.into())
    } else {
        Ok(numbers)
    }
}

/// Opens the MSR device of a CPU.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn open(cpu: u32) -> Result<File, String> {
    let path = format!("/dev/cpu/{cpu}/msr");
    File::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{path}: no permission: root with CAP_SYS_RAWIO is needed (sudo)")
        }
        _ => format!("{path}: {error} (is the CPU online, and the module \"msr\" loaded?)"),
    })
}

/// Whether CPUID has Intel's memory encryption.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn has_tme() -> bool {
    raw_cpuid::cpuid!(0).eax >= 7 && raw_cpuid::cpuid!(7, 0).ecx >> 13 & 1 == 1
}

/// One register; `None` where the CPU has none.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn rdmsr(file: &File, msr: mtrr_pat::regs::MsrAddr) -> Option<u64> {
    use std::os::unix::fs::FileExt;

    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, u64::from(msr.0)).ok()?;
    Some(u64::from_le_bytes(bytes))
}

/// The width the MTRRs decode: CPUID, less what memory encryption takes.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn width(dump: &mut Dump, file: &File) {
    use mtrr_pat::regs::{MsrAddr, SysCfg};

    let leaf = |leaf: u32| raw_cpuid::cpuid!(leaf);
    if leaf(0x8000_0000).eax < 0x8000_0008 {
        return;
    }
    let mut bits = leaf(0x8000_0008).eax as u8;
    let mut taken = 0;
    if dump.vendor == Vendor::Amd && leaf(0x8000_0000).eax >= 0x8000_001f {
        let on = SysCfg::MEM_ENCRYPTION_MOD_EN | SysCfg::HMKEE;
        let syscfg = rdmsr(file, MsrAddr::SYSCFG).map(SysCfg::from_raw);
        if syscfg.is_some_and(|syscfg| syscfg.intersects(on)) {
            taken = (leaf(0x8000_001f).ebx >> 6 & 0x3f) as u8;
        }
    } else if let Some(tme) = rdmsr(file, MsrAddr::TME_ACTIVATE).filter(|tme| tme & 3 == 3) {
        taken = (tme >> 32 & 0xf) as u8;
    }
    bits = bits.saturating_sub(taken);
    dump.stated_bits = Some((bits, "CPUID".into()));
    dump.bits_from_cpuid = true;
    if leaf(1).ecx >> 31 & 1 == 1 {
        dump.hypervisor.get_or_insert("CPUID says so".into());
    }
}
