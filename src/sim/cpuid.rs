//! What CPUID answers: one consistent story about topology, features and address width.

use super::config::{Config, Vendor};
use super::state::State;
use crate::cpu::CpuidWords;
use crate::regs::MsrAddr;

const MTRR: u32 = 1 << 12;
const PAT: u32 = 1 << 16;
const SELF_SNOOP: u32 = 1 << 27;
/// FPU, TSC, MSR, PAE, APIC, PGE, CLFSH, SSE, SSE2, HTT.
const EDX_ALWAYS: u32 =
    1 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 9 | 1 << 13 | 1 << 19 | 1 << 25 | 1 << 26 | 1 << 28;
/// SSE3, PCID, x2APIC.
const ECX_ALWAYS: u32 = 1 | 1 << 17 | 1 << 21;
const HYPERVISOR: u32 = 1 << 31;
/// Leaf 7, ECX.
const TME: u32 = 1 << 13;

pub(crate) fn answer(state: &State, cpu: usize, leaf: u32, subleaf: u32) -> CpuidWords {
    let config = &state.config;
    let chosen = config.cpuid.iter().find(|(who, of, sub, _)| {
        who.is_none_or(|who| who == cpu) && (*of, *sub) == (leaf, subleaf)
    });
    if let Some((.., words)) = chosen {
        return *words;
    }
    match leaf {
        0 => vendor(config, if config.tdx { 0x21 } else { 0x1f }),
        1 => features(state, cpu),
        7 if subleaf == 0 && config.other_msrs.contains_key(&MsrAddr::TME_ACTIVATE.0) => {
            words(0, 0, TME, 0)
        }
        0xb | 0x1f if leaf == 0xb || config.vendor == Vendor::Intel => {
            topology(config, cpu, subleaf)
        }
        // A crystal of 25 MHz, times 40: a tick of the time-stamp counter is a nanosecond.
        0x15 => words(1, 40, 25_000_000, 0),
        0x21 if config.tdx && subleaf == 0 => named(0, *b"IntelTDX    "),
        0x8000_0000 => match config.vendor {
            Vendor::Intel => words(0x8000_0008, 0, 0, 0),
            Vendor::Amd => vendor(config, 0x8000_0026),
        },
        0x8000_0001 => words(config.signature, 0, 1, 1 << 29 | 1 << 26 | 1 << 20),
        0x8000_0007 => words(0, 0, 0, 1 << 8),
        0x8000_0008 => addresses(state, cpu),
        0x8000_001e if config.vendor == Vendor::Amd => amd_topology(config, cpu),
        0x8000_001f if config.vendor == Vendor::Amd => encryption(config),
        0x8000_0026 if config.vendor == Vendor::Amd => {
            // The same levels, but the outer one is called socket (4).
            let mut level = topology(config, cpu, subleaf);
            if subleaf == 1 {
                level.ecx = 4 << 8 | subleaf;
            }
            level
        }
        _ => CpuidWords::default(),
    }
}

const fn words(eax: u32, ebx: u32, ecx: u32, edx: u32) -> CpuidWords {
    CpuidWords { eax, ebx, ecx, edx }
}

/// A twelve-letter name in EBX, EDX, ECX.
fn named(eax: u32, name: [u8; 12]) -> CpuidWords {
    let part = |from: usize| {
        u32::from_le_bytes([name[from], name[from + 1], name[from + 2], name[from + 3]])
    };
    words(eax, part(0), part(8), part(4))
}

fn vendor(config: &Config, highest: u32) -> CpuidWords {
    match config.vendor {
        Vendor::Intel => named(highest, *b"GenuineIntel"),
        Vendor::Amd => named(highest, *b"AuthenticAMD"),
    }
}

fn features(state: &State, cpu: usize) -> CpuidWords {
    let config = &state.config;
    let regs = &state.cpus[cpu].regs;
    let in_package = config.threads * config.cores_per_package;
    let mut ecx = ECX_ALWAYS;
    let mut edx = EDX_ALWAYS;
    if config.hypervisor {
        ecx |= HYPERVISOR;
    }
    if regs.cap.is_some() {
        edx |= MTRR;
    }
    if regs.pat.is_some() {
        edx |= PAT;
    }
    if config.self_snoop {
        edx |= SELF_SNOOP;
    }
    let ebx = (config.apic_id(cpu) & 0xff) << 24 | (in_package as u32 & 0xff) << 16 | 8 << 8;
    words(config.signature, ebx, ecx, edx)
}

/// Leaves 0xB and 0x1F: threads, then cores, then nothing.
fn topology(config: &Config, cpu: usize, subleaf: u32) -> CpuidWords {
    let apic_id = config.apic_id(cpu);
    let (shift, count, kind) = match subleaf {
        0 => (config.smt_shift(), config.threads, 1),
        1 => (
            config.package_shift(),
            config.threads * config.cores_per_package,
            2,
        ),
        _ => return words(0, 0, subleaf & 0xff, apic_id),
    };
    words(shift, count as u32 & 0xffff, kind << 8 | subleaf, apic_id)
}

fn amd_topology(config: &Config, cpu: usize) -> CpuidWords {
    let (core, _) = config.place(cpu);
    let core = (core % config.cores_per_package) as u32;
    let threads = config.threads as u32;
    words(config.apic_id(cpu), (threads - 1) << 8 | core & 0xff, 0, 0)
}

fn addresses(state: &State, cpu: usize) -> CpuidWords {
    let config = &state.config;
    let width = u32::from(state.cpus[cpu].regs.phys_bits.get() + config.encryption_bits);
    let ecx = match config.vendor {
        Vendor::Intel => 0,
        Vendor::Amd => {
            let threads = (config.threads * config.cores_per_package) as u32;
            (config.package_shift() & 0xf) << 12 | (threads - 1) & 0xff
        }
    };
    words(48 << 8 | width, 0, ecx, 0)
}

/// Leaf 0x8000001F: SME where it takes address bits; SEV, ES and SNP in a guest of that kind.
fn encryption(config: &Config) -> CpuidWords {
    let bits = u32::from(config.encryption_bits);
    let sev_status = config.other_msrs.get(&MsrAddr::SEV_STATUS.0);
    let sev_status = sev_status.copied().unwrap_or(0);
    let guest = if sev_status & 0b100 != 0 { 0b1_1010 } else { 0 };
    let host = u32::from(bits > 0);
    match host | guest {
        0 => CpuidWords::default(),
        eax => words(eax, bits << 6 | 47, 0, 0),
    }
}
