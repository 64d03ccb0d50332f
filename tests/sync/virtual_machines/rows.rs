//! The virtual machines, what a guest sees of each, and what is to happen there.

use mtrr_pat::error::{Error, Left};
use mtrr_pat::regs::MsrAddr;
use mtrr_pat::report::Path;
use mtrr_pat::sim::Config;

/// A hypervisor, and what is to happen on it.
pub struct Row {
    pub name: &'static str,
    pub machine: fn(usize, usize) -> Config,
    /// CPUID's highest leaf for a hypervisor, and the name in it.
    pub leaf: (u32, &'static [u8; 12]),
    pub sees: Sees,
    pub does: Does,
    /// What becomes of the values of [`WRITES`]: stored, `#`GP or lost.
    pub writes: &'static str,
    /// What SYSCFG reads, if it can be read.
    pub syscfg: Option<u64>,
}

/// What a guest sees.
pub struct Sees {
    pub cap: u64,
    pub def_type: u64,
    pub bits: u8,
    pub tsc_hz: Option<u64>,
    /// For 4 cores, for 2 of 2 threads.
    pub smt_shift: [Option<u8>; 2],
}

/// What the crate does there.
#[derive(Debug, PartialEq)]
pub struct Does {
    /// An AP's way to the target, at its start.
    pub start: Path,
    /// The boot CPU's and an AP's after S3.
    pub wake: (Path, Path),
    pub refused: Option<Error>,
    /// CPUs out of line at the end of bring-up, at the end of the wake's, and after the change.
    pub out: [u32; 3],
    pub change: Option<Error>,
}

const LINE: Does = Does {
    start: Path::Pat,
    wake: (Path::Pat, Path::Pat),
    refused: None,
    out: [0; 3],
    change: None,
};

const KVM: &[u8; 12] = b"KVMKVMKVM\0\0\0";
/// Where leaf 0xB tells of threads.
const TOLD: [Option<u8>; 2] = [Some(0), Some(1)];

const fn sees(cap: u64, def_type: u64, bits: u8) -> Sees {
    Sees {
        cap,
        def_type,
        bits,
        tsc_hz: None,
        smt_shift: TOLD,
    }
}

/// Base with a reserved bit, base with an address bit too many, a fixed range with RdMem and WrMem, one with
/// a reserved type, PAT with a reserved type, and a base as it should be.
pub const WRITES: [(u32, u64); 6] = [
    (0x200, 0x106),
    (0x200, 1 << 46 | 6),
    (0x250, 0x1e),
    (0x250, 0x02),
    (0x277, 0x02),
    (0x200, 0x8000_0006),
];

pub fn rows() -> Vec<Row> {
    let row = |name, machine, leaf, sees, does| Row {
        name,
        machine,
        leaf,
        sees,
        does,
        writes: "#####s",
        syscfg: None,
    };
    let (window, off) = (Path::Window, Path::Pat);
    vec![
        row(
            "KVM, Intel",
            Config::kvm_intel,
            (0x4000_0001, KVM),
            sees(0x508, 0xc06, 40),
            LINE,
        ),
        Row {
            syscfg: Some(0),
            ..row(
                "KVM, AMD",
                Config::kvm_amd,
                (0x4000_0001, KVM),
                sees(0x508, 0xc06, 40),
                LINE,
            )
        },
        row(
            "Cloud Hypervisor",
            Config::cloud_hypervisor,
            (0x4000_0001, KVM),
            sees(0x508, 0x806, 40),
            LINE,
        ),
        Row {
            writes: "ssssss",
            syscfg: Some(0),
            ..row(
                "QEMU without accelerator",
                |cores, threads| Config::qemu_tcg(cores * threads),
                (0x4000_0001, b"TCGTCGTCGTCG"),
                Sees {
                    smt_shift: [Some(0); 2],
                    ..sees(0x508, 0xc06, 40)
                },
                Does {
                    start: window,
                    wake: (Path::Pat, window),
                    ..LINE
                },
            )
        },
        row(
            "Hyper-V, generation 1",
            Config::hyper_v_gen1,
            (0x4000_000b, b"Microsoft Hv"),
            sees(0x508, 0xc00, 44),
            LINE,
        ),
        row(
            "Hyper-V, generation 2",
            Config::hyper_v_gen2,
            (0x4000_000b, b"Microsoft Hv"),
            sees(0x508, 0xc00, 44),
            LINE,
        ),
        row(
            "Hyper-V, utility (WSL 2)",
            Config::hyper_v_utility,
            (0x4000_000b, b"Microsoft Hv"),
            sees(0x508, 0, 44),
            Does { start: off, ..LINE },
        ),
        row(
            "VMware",
            Config::vmware,
            (0x4000_0010, b"VMwareVMware"),
            Sees {
                tsc_hz: Some(1_000_000_000),
                ..sees(0x508, 0xc00, 45)
            },
            LINE,
        ),
        Row {
            writes: "s####s",
            ..row(
                "VirtualBox 7.1",
                Config::virtualbox,
                (0x4000_0001, KVM),
                sees(0x508, 0xc00, 39),
                Does {
                    start: window,
                    wake: (Path::Pat, Path::Pat),
                    ..LINE
                },
            )
        },
        Row {
            writes: "-####-",
            ..row(
                "VirtualBox 7.1, ranges read-only",
                Config::virtualbox_read_only,
                (0x4000_0001, KVM),
                sees(0x508, 0xc00, 39),
                Does {
                    start: Path::Failed,
                    wake: (Path::Pat, Path::Failed),
                    refused: Some(IGNORED),
                    out: [3, 3, 3],
                    change: Some(IGNORED),
                },
            )
        },
        Row {
            writes: "######",
            ..row(
                "VirtualBox up to 7.0",
                Config::virtualbox_old,
                (0x4000_0001, KVM),
                sees(0, 0, 39),
                LINE,
            )
        },
        row(
            "Xen HVM",
            Config::xen_hvm,
            (0x4000_0005, b"XenVMMXenVMM"),
            Sees {
                smt_shift: [Some(2); 2],
                ..sees(0x508, 0xc06, 46)
            },
            Does {
                wake: (Path::InSync, Path::InSync),
                ..LINE
            },
        ),
        Row {
            writes: "#sss#s",
            ..row(
                "bhyve",
                Config::bhyve,
                (0x4000_0000, b"bhyve bhyve "),
                sees(0x50a, 0xc06, 39),
                LINE,
            )
        },
    ]
}

/// The write that shows that they are lost.
const IGNORED: Error = Error::WriteIgnored {
    msr: MsrAddr(0x20e),
    value: 0x1006,
    left: Left::Unchanged,
};
