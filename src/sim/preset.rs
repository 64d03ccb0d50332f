//! Processors and hypervisors as they answer: CPUID, MTRRCAP, and which registers exist.
//!
//! Of a hypervisor's answers each preset says where they are known from: its source, or what its guests
//! print while they boot. What is assumed is called so.

mod bhyve;
mod hyper_v;
mod kvm;
mod qemu;
mod virtualbox;
mod vmware;
mod xen;

use super::config::{Config, MtrrScope};
use super::firmware::S3;
use super::scribble::Scribble;
use super::write_checks::WriteChecks;
use crate::cpu::CpuidWords;
use crate::memtype::MemType;
use crate::ranges::PhysBits;
use crate::regs::{FIXED_COUNT, MAX_VARIABLE, MtrrCap, MtrrDefType, VariableMtrr};
use crate::snapshot::Snapshot;

/// MTRRCAP of most: eight pairs, fixed ranges, write-combining.
const EIGHT: u64 = 0x508;
/// DEF_TYPE with E, FE and write-back.
const ON_WRITE_BACK: u64 = 0xc06;
/// DEF_TYPE with E, FE and uncachable.
const ON_UNCACHABLE: u64 = 0xc00;
const ALL_WRITE_BACK: u64 = 0x0606_0606_0606_0606;
const ALL_WRITE_PROTECTED: u64 = 0x0505_0505_0505_0505;

impl Config {
    /// A Zhaoxin machine: Intel's registers and tables under another vendor's name.
    #[must_use]
    pub fn zhaoxin(cores: usize, threads: usize) -> Self {
        let mut config = Self::new(cores, threads);
        config.signature = 0x0007_03b0;
        for map in config.maps() {
            map.cap = Some(MtrrCap::from_raw(EIGHT));
        }
        config.leaf(
            0,
            CpuidWords {
                eax: 0x1f,
                ebx: u32::from_le_bytes(*b"  Sh"),
                ecx: u32::from_le_bytes(*b"ai  "),
                edx: u32::from_le_bytes(*b"angh"),
            },
        );
        config
    }

    /// What all virtual machines here have in common: CPUs of their own registers, all MTRRs zero but
    /// MTRRCAP, no leaf that tells the rate of the time-stamp counter, none above 0xB for the topology, and
    /// memory that stays cached whatever CR0.CD says: a hypervisor that honours it at all does so for a guest
    /// with devices of its own.
    ///
    /// That a guest's CR0.CD reads as it wrote it, that its WBINVD does not fault, and that its MTRRs
    /// are no other CPU's, holds for each of them.
    fn guest(cores: usize, threads: usize, bits: u8, cap: u64) -> Self {
        let mut config = Self::new(cores, threads);
        config.signature = 0x0005_0654;
        config.hypervisor = true;
        config.scope = MtrrScope::Thread;
        config.fills_despite_cd = true;
        config.write_checks = WriteChecks::PLAIN_TYPES;
        config.wake = S3::all(Scribble::PatReset);
        for map in config.maps() {
            let pat = map.pat;
            *map = Snapshot::empty(PhysBits::new(bits).unwrap_or(PhysBits::MIN));
            map.cap = Some(MtrrCap::from_raw(cap));
            map.pat = pat;
        }
        config.leaf(0x15, CpuidWords::default());
        for subleaf in 0..2 {
            let nothing = (None, 0x1f, subleaf, CpuidWords::default());
            config.cpuid.push(nothing);
        }
        config
    }

    /// The highest leaf for a hypervisor, and its name: in EBX, ECX, EDX, unlike a vendor's.
    fn named(&mut self, highest: u32, name: [u8; 12]) {
        let part = |n: usize| u32::from_le_bytes([name[n], name[n + 1], name[n + 2], name[n + 3]]);
        self.leaf(
            0x4000_0000,
            CpuidWords {
                eax: highest,
                ebx: part(0),
                ecx: part(4),
                edx: part(8),
            },
        );
    }

    /// One answer for all CPUs, sub-leaf 0.
    fn leaf(&mut self, leaf: u32, words: CpuidWords) {
        self.cpuid.push((None, leaf, 0, words));
    }

    const fn maps(&mut self) -> [&mut Snapshot; 2] {
        [&mut self.boot, &mut self.aps]
    }
}

/// A map as firmware leaves it: conventional memory write-back, video uncachable, the rest below 1 MiB of
/// this word; and blocks, each (base, size, type).
fn program(map: &mut Snapshot, def_type: u64, above_video: u64, blocks: &[(u64, u64, MemType)]) {
    map.def_type = MtrrDefType::from_raw(def_type);
    map.fixed = [above_video; FIXED_COUNT];
    map.fixed[..3].copy_from_slice(&[ALL_WRITE_BACK, ALL_WRITE_BACK, 0]);
    map.variable = [VariableMtrr::default(); MAX_VARIABLE];
    for (pair, &(base, size, memtype)) in map.variable.iter_mut().zip(blocks) {
        *pair = VariableMtrr::from_block(base, size, memtype, map.phys_bits).unwrap_or_default();
    }
}
