//! What machine to simulate: topology, registers, behaviours, costs.

use std::collections::BTreeMap;

use super::cost::Costs;
use super::fault::Fault;
use super::firmware::S3;
use super::firmware_map::firmware_map;
use super::scribble::Scribble;
use super::write_checks::WriteChecks;
use crate::cpu::CpuidWords;
use crate::regs::{IORR_COUNT, MsrAddr, MtrrCap, SysCfg};
use crate::snapshot::Snapshot;

/// Whose processor it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// GenuineIntel.
    Intel,
    /// AuthenticAMD: SYSCFG, TOP_MEM2, IORRs exist.
    Amd,
}

/// Who shares one set of MTRRs. The manuals contradict each other: run every test under both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtrrScope {
    /// The threads of a core share one set.
    Core,
    /// Each thread has its own.
    Thread,
}

/// How CPU numbers map to cores and threads. CPU 0 is the boot CPU, thread 0 of core 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// Threads of a core have neighbouring numbers.
    ThreadsTogether,
    /// First all first threads, then all second ones.
    CoresFirst,
}

/// What takes turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// The CPU with the smallest virtual time runs, alone: deterministic. A seed other than 0
    /// perturbs the costs, and so the order, repeatably.
    Baton {
        /// 0 leaves the costs as they are.
        seed: u64,
    },
    /// Real threads, unordered. One clock for all CPUs: a nanosecond for every operation, and on to
    /// the next deadline when no CPU can go on by itself. A loaded host makes nobody late. The costs
    /// do not count.
    Free {
        /// 0 adds nothing; other seeds sprinkle thread yields.
        seed: u64,
    },
}

/// What INIT does to a CPU's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Init {
    /// MTRRs, PAT, CR0.CD and CR0.NW stay: real processors.
    KeepsMtrrs,
    /// The MTRRs stay; the PAT, and CR0 with CD and NW, are as out of reset: VirtualBox.
    ResetsPat,
    /// The MTRRs are cleared (E=0, all words 0): QEMU's TCG. Only with [`MtrrScope::Thread`].
    WipesMtrrs,
}

/// What an AP's trampoline does with CR0.CD and CR0.NW before kernel code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trampoline {
    /// It only sets PE and PG: both stay as reset or INIT left them.
    LeavesCaching,
    /// It clears both.
    EnablesCaching,
}

/// An area of linear (identity-mapped) memory whose pages select a PAT slot other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First byte.
    pub start: u64,
    /// First byte after it.
    pub end: u64,
    /// PAT slot, 0 to 7.
    pub slot: u8,
    /// Whether the pages are global.
    pub global: bool,
}

/// The description of a simulated machine. Plain data; [`Config::new`] is a usual desktop.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of cores.
    pub cores: usize,
    /// Threads of each core.
    pub threads: usize,
    /// Cores in one package; topology only.
    pub cores_per_package: usize,
    /// Cores that share one last-level cache; cost model only.
    pub cores_per_llc: usize,
    /// How CPUs are numbered.
    pub numbering: Numbering,
    /// Whose processor.
    pub vendor: Vendor,
    /// Who shares a set of MTRRs.
    pub scope: MtrrScope,
    /// What firmware programs on the boot CPU at power-on. `cap: None` means no MTRRs,
    /// `pat: None` no PAT, `syscfg` only matters on AMD. Fixed words may hold RdMem/WrMem.
    pub boot: Snapshot,
    /// What firmware programs on the APs at power-on.
    pub aps: Snapshot,
    /// CPUs whose VCNT is not that of their snapshot: number, VCNT.
    pub vcnt: Vec<(usize, u8)>,
    /// Further MSRs of every CPU: TOP_MEM, IORRs, SEV_STATUS, TME_ACTIVATE and the like. They can
    /// be read and written, and firmware restores them. With TME_ACTIVATE, CPUID reports TME.
    pub other_msrs: BTreeMap<u32, u64>,
    /// Those of `other_msrs` that hold something else on one CPU: number, register, value.
    pub cpu_msrs: Vec<(usize, MsrAddr, u64)>,
    /// Bits memory encryption takes from the width CPUID reports (AMD: bits 11:6 of 0x8000001F EBX;
    /// Intel: what TME_ACTIVATE should say).
    pub encryption_bits: u8,
    /// Bit 31 of CPUID.1:ECX.
    pub hypervisor: bool,
    /// Bit 27 of CPUID.1:EDX.
    pub self_snoop: bool,
    /// A TDX guest: CPUID leaf 0x21 says so.
    pub tdx: bool,
    /// Setting CR0.CD faults, as in TDX and SNP guests.
    pub cd_faults: bool,
    /// Family, model, stepping as CPUID.1:EAX encodes them.
    pub signature: u32,
    /// CPUID leaves that answer otherwise: (CPU or all, leaf, subleaf), words.
    pub cpuid: Vec<(Option<usize>, u32, u32, CpuidWords)>,
    /// What INIT does.
    pub init: Init,
    /// What WRMSR refuses.
    pub write_checks: WriteChecks,
    /// What the firmware of this machine gives back after S3. Nobody but who calls
    /// [`SimCpu::s3`](super::SimCpu::s3) with it uses it.
    pub wake: S3,
    /// CR0 of the APs when the kernel first runs: firmware usually cleared CD and NW.
    pub ap_cr0: u64,
    /// What the trampoline does.
    pub trampoline: Trampoline,
    /// CR4 once the kernel runs on a CPU.
    pub cr4: u64,
    /// CR3 once the kernel runs on a CPU.
    pub cr3: u64,
    /// Where kernel code lies (a global page).
    pub code: u64,
    /// Areas mapped with another PAT slot.
    pub mappings: Vec<Mapping>,
    /// Deterministic or free-running.
    pub schedule: Schedule,
    /// By how many picoseconds a CPU may run ahead of the others before it hands over
    /// ([`Schedule::Baton`] only). 0 is exact. More makes runs of hundreds of CPUs many times
    /// faster, and as repeatable; what one CPU does is then seen by others up to so much too early
    /// or too late.
    pub quantum: u64,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// Whether the event list is kept.
    pub log: bool,
    /// Whether accesses of shared words are in it.
    pub log_shared: bool,
    /// What operations cost.
    pub costs: Costs,
    /// Whether the spans of [`Machine::timeline`](super::Machine::timeline) are kept.
    pub timeline: bool,
    /// Whether lines come back into the caches by speculation while CR0.CD is set, as long as the MTRRs
    /// are on and make their memory cacheable: the manuals bind no-fill mode to no implementation.
    pub fills_despite_cd: bool,
    /// Whether an interrupt sent with stores of shared words still unfenced breaks a rule.
    pub kicks_overtake_stores: bool,
    /// Scheduling points after which a run is declared endless.
    pub max_steps: u64,
}

impl Config {
    /// An Intel machine of `cores` x `threads` with MTRRs per core, ten variable ranges, and the
    /// map of [`firmware_map`] on every CPU.
    #[must_use]
    pub fn new(cores: usize, threads: usize) -> Self {
        let map = firmware_map();
        Self {
            cores: cores.max(1),
            threads: threads.max(1),
            cores_per_package: cores.max(1),
            cores_per_llc: cores.clamp(1, 8),
            numbering: Numbering::ThreadsTogether,
            vendor: Vendor::Intel,
            scope: MtrrScope::Core,
            boot: map,
            aps: map,
            vcnt: Vec::new(),
            other_msrs: BTreeMap::new(),
            cpu_msrs: Vec::new(),
            encryption_bits: 0,
            hypervisor: false,
            self_snoop: true,
            tdx: false,
            cd_faults: false,
            signature: 0x000c_06f2,
            cpuid: Vec::new(),
            init: Init::KeepsMtrrs,
            write_checks: WriteChecks::MANUALS,
            wake: S3::all(Scribble::LikeBoot),
            ap_cr0: 0x10,
            trampoline: Trampoline::LeavesCaching,
            cr4: 0xa0,
            cr3: 0x1000,
            code: 0x20_0000,
            mappings: Vec::new(),
            schedule: Schedule::Baton { seed: 0 },
            quantum: 0,
            faults: Vec::new(),
            log: true,
            log_shared: false,
            costs: Costs::default(),
            timeline: false,
            fills_despite_cd: false,
            kicks_overtake_stores: false,
            max_steps: 200_000_000,
        }
    }

    /// The same on an AMD processor: SYSCFG and TOP_MEM2 exist, RAM above 4 GiB is forced WB.
    #[must_use]
    pub fn amd(cores: usize, threads: usize) -> Self {
        let mut config = Self::new(cores, threads);
        config.vendor = Vendor::Amd;
        config.signature = 0x00a2_0f10;
        let syscfg = SysCfg::MTRR_FIX_DRAM_EN
            | SysCfg::MTRR_VAR_DRAM_EN
            | SysCfg::MTRR_TOM2_EN
            | SysCfg::TOM2_FORCE_WB;
        for snapshot in [&mut config.boot, &mut config.aps] {
            snapshot.syscfg = Some(syscfg);
            snapshot.top_mem2 = 0x2_4000_0000;
            for word in &mut snapshot.fixed {
                if *word == 0x0606_0606_0606_0606 {
                    *word = 0x1e1e_1e1e_1e1e_1e1e;
                }
            }
        }
        config.other_msrs.insert(MsrAddr::TOP_MEM.0, 0x8000_0000);
        for n in 0..IORR_COUNT {
            config.other_msrs.insert(MsrAddr::iorr_base(n).0, 0);
            config.other_msrs.insert(MsrAddr::iorr_mask(n).0, 0);
        }
        config.other_msrs.insert(MsrAddr::SEV_STATUS.0, 0);
        config
    }

    /// Makes it an Intel machine with multi-key memory encryption, locked and enabled, whose key
    /// numbers take this many address bits.
    #[must_use]
    pub fn with_tme(mut self, key_bits: u8) -> Self {
        const AES_XTS_128_LOCKED_AND_ENABLED: u64 = 1 << 48 | 0b11;
        let word = AES_XTS_128_LOCKED_AND_ENABLED | u64::from(key_bits & 0xf) << 32;
        self.other_msrs.insert(MsrAddr::TME_ACTIVATE.0, word);
        self.encryption_bits = key_bits;
        self
    }

    /// Makes it a TDX guest: CPUID says so, and setting CR0.CD faults.
    #[must_use]
    pub const fn tdx_guest(mut self) -> Self {
        self.tdx = true;
        self.hypervisor = true;
        self.cd_faults = true;
        self
    }

    /// Makes it an SNP guest: SEV_STATUS and CPUID say so, and setting CR0.CD faults.
    #[must_use]
    pub fn snp_guest(mut self) -> Self {
        const SEV_ES_SNP: u64 = 0b111;
        self.other_msrs.insert(MsrAddr::SEV_STATUS.0, SEV_ES_SNP);
        self.hypervisor = true;
        self.cd_faults = true;
        self
    }

    /// What firmware programs into the further MSRs of one CPU at power-on.
    pub(crate) fn other(&self, cpu: usize) -> BTreeMap<u32, u64> {
        let mut msrs = self.other_msrs.clone();
        let own = self.cpu_msrs.iter().filter(|(number, ..)| *number == cpu);
        msrs.extend(own.map(|(_, msr, value)| (msr.0, *value)));
        msrs
    }

    /// What firmware programs on one CPU at power-on, VCNT overrides applied.
    pub(crate) fn firmware(&self, cpu: usize) -> Snapshot {
        let mut snapshot = if cpu == 0 { self.boot } else { self.aps };
        if self.vendor == Vendor::Intel {
            snapshot.syscfg = None;
            snapshot.top_mem2 = 0;
        }
        if let (Some(cap), Some((_, vcnt))) = (
            snapshot.cap,
            self.vcnt.iter().find(|(number, _)| *number == cpu),
        ) {
            snapshot.cap = Some(MtrrCap::from_raw((cap.raw() & !0xff) | u64::from(*vcnt)));
        }
        snapshot
    }
}
