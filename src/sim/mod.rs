//! A simulated machine: cores, threads, MSR scopes, faults, an event log and a cost model.
//!
//! For tests and demonstrations, with `std` and a heap. It owns what the manuals say a processor
//! does with MTRRs, PAT, CR0.CD and TLBs; it refuses to know the rest of this crate, so that the
//! two check each other. It simulates no instructions and no memory contents: simulated CPUs are
//! threads that run real code, and talk to the machine through [`CpuOps`](crate::cpu::CpuOps).
//!
//! ```
//! use mtrr_pat::atomic::{Ordering, Word};
//! use mtrr_pat::cpu::CpuOps;
//! use mtrr_pat::regs::MsrAddr;
//! use mtrr_pat::sim::{Config, Machine, Op, S3, Scribble};
//!
//! let machine = Machine::new(Config::new(2, 2)); // two cores of two threads
//! let online = Word::new(0);
//! machine.run(
//!     |boot| {
//!         boot.s3(&S3::aps(Scribble::Off)); // the APs come back with their MTRRs off
//!         boot.send_init_sipi(2);
//!         while online.load(Ordering::Acquire) == 0 {
//!             boot.pause_while(&online, 0, u64::MAX); // sleeps in virtual time
//!         }
//!     },
//!     |ap| {
//!         assert_eq!(ap.rdmsr(MsrAddr::MTRR_DEF_TYPE), Ok(0x400));
//!         online.store(1, Ordering::Release);
//!     },
//!     |_interrupted| (),
//! );
//! assert_eq!(machine.ops(2)[..2], [Op::Start, Op::Rdmsr(0x2ff, 0x400)]);
//! machine.check()?; // no rule was broken
//! # Ok::<(), mtrr_pat::sim::Violations>(())
//! ```
//!
//! # Time
//! With [`Schedule::Baton`] one CPU runs at a time: the one whose virtual time is smallest, the
//! lowest number first. Every instruction, every access of a [`Word`](crate::atomic::Word) and
//! every piece of kernel work is a scheduling point. The same configuration gives the same events;
//! a seed changes the costs a little, and so the order. [`Costs`] are picoseconds, the time-stamp
//! counter counts nanoseconds and is off by a different amount on every CPU.
//! Runs of hundreds of CPUs spend their time switching threads; [`Config::quantum`] makes them
//! coarser and faster.
//! A CPU in [`pause_while`](crate::cpu::CpuOps::pause_while) sleeps until the word is written, its
//! deadline passes or an interrupt arrives. A run in which nobody can go on ends with
//! [`Stop::Deadlock`], one that spins with [`Stop::Endless`]; both name who is where.
//! With [`Schedule::Free`] the same threads run unordered, and interleave as the host likes. Time is
//! still the machine's: operations take next to none, and a deadline comes when no CPU can go on by
//! itself.
//!
//! # Locks of the host
//! While one CPU has the baton the others wait for it, also one that holds a lock of the host: hold
//! none across an access of a [`Word`](crate::atomic::Word) or an instruction. `println!` holds one
//! while it formats: a report is made a string first.
//!
//! # Virtual machines
//! [`Config::kvm_intel`], [`Config::kvm_amd`], [`Config::cloud_hypervisor`], [`Config::qemu_tcg`],
//! [`Config::hyper_v_gen1`], [`Config::hyper_v_gen2`], [`Config::hyper_v_utility`], [`Config::vmware`],
//! [`Config::virtualbox`], [`Config::virtualbox_read_only`], [`Config::virtualbox_old`],
//! [`Config::xen_hvm`], [`Config::bhyve`]: CPUID, registers, what WRMSR refuses ([`WriteChecks`]), INIT, and S3
//! ([`Config::wake`]) as their guests find them. Memory types count as on hardware, though most of them ignore
//! a guest's; a kernel that is right here is right there. What becomes of each is a table in
//! [`platform`](crate::platform#under-a-hypervisor).
//!
//! # Rules
//! Breaking a [`Rule`] does not stop a CPU, as hardware would not; [`Machine::check`] reports it.
//! What hardware does punish at once is a panic: clearing CR0.CD with NW set, and setting CD in a
//! guest that may not.
//!
//! # What it cannot show
//! It has no memory contents: of kernel loads and stores it knows which store a line is of, of the
//! crate's shared words nothing, so incoherence and late stores there are not observed but
//! forbidden by the rules; its costs
//! are assumptions, each marked so; interrupts come between operations, not inside them; NMIs and
//! machine checks do not exist; a TLB never evicts, and paging-structure caches are not modelled.
#![allow(clippy::indexing_slicing)] // CPU numbers index tables built for them; a wrong one is the test's mistake

mod announced;
mod bus;
mod caches;
mod check;
mod config;
mod cost;
mod counters;
mod cpu;
mod cpuid;
mod fault;
mod firmware;
mod firmware_map;
mod free;
mod lines;
mod log;
mod machine;
mod msr;
mod ops;
mod place;
mod preset;
mod registers;
mod run;
mod sched;
mod scribble;
mod sleep;
mod state;
mod stop;
mod time;
mod tlb;
mod touch;
mod translate;
mod types;
mod watch;
mod work;
mod write_checks;
mod write_queue;

pub use caches::StaleLine;
pub use check::{Rule, Violation, Violations};
pub use config::{Config, Init, Mapping, MtrrScope, Numbering, Schedule, Trampoline, Vendor};
pub use cost::{BusContention, Costs};
pub use counters::Counters;
pub use cpu::SimCpu;
pub use fault::{At, Fault, What};
pub use firmware::S3;
pub use firmware_map::firmware_map;
pub use log::{Activity, Event, Op, Span};
pub use machine::Machine;
pub use registers::{CR0_KERNEL, CR0_RESET};
pub use scribble::{Rewrite, Scribble};
pub use stop::Stop;
pub use work::Ipis;
pub use write_checks::WriteChecks;
