//! The crate in a kernel: the life of a machine, the orders of things, the words, the errors.
//!
//! # One life
//! All calls, on the simulated machine; on hardware `cpu` is
//! [`NativeCpu::claim`](crate::cpu::native::NativeCpu::claim) or
//! [`claim_catching`](crate::cpu::native::NativeCpu::claim_catching).
//!
//! ```
//! # #[cfg(feature = "sim")] fn main() -> Result<(), mtrr_pat::error::Error> {
//! use mtrr_pat::layout::{Edit, Region};
//! use mtrr_pat::memtype::MemType;
//! use mtrr_pat::prelude::*;
//! use mtrr_pat::sim::{Config, Machine, S3, Scribble, SimCpu};
//!
//! static SYNC: CacheSync<8> = CacheSync::new();
//!
//! /// Starts CPU `n`, and waits for it: at boot, at hot-plug and after S3.
//! fn start(cpu: &mut SimCpu<'_>, n: usize) -> Result<(), Error> {
//!     let place = Place::Apic(cpu.machine().config().apic_id(n));
//!     cpu.cli(); // nobody may ask this CPU to stand still before the SIPI is sent
//!     // SAFETY: that is where it sits, and how it numbers itself.
//!     unsafe { SYNC.starting(cpu, n, place)? };
//!     cpu.send_init_sipi(n);
//!     cpu.sti();
//!     for _ in 0..10_000 {
//!         if SYNC.state(n)? == CpuState::Running {
//!             return Ok(());
//!         }
//!         SYNC.hold_point(cpu, 0)?;
//!         cpu.work(10_000);
//!     }
//!     cpu.send_init(n); // it may be merely late
//!     // SAFETY: so it executes nothing.
//!     unsafe { SYNC.offline(n) }
//! }
//!
//! fn boot_cpu(cpu: &mut SimCpu<'_>) -> Result<(), Error> {
//!     // SAFETY: no AP runs yet.
//!     unsafe { SYNC.boot_init(cpu, 0, Policy::DEFAULT)? }.ok()?;
//!     for n in 1..4 {
//!         start(cpu, n)?;
//!     }
//!     let ipis = cpu.ipis();
//!     let kick = |n| ipis.send(n);
//!     SYNC.resync(cpu, 0, kick)?.ok()?;
//!
//!     // A frame buffer in write-combining.
//!     let (_, now) = SYNC.target()?;
//!     let mut edit = Edit::of(&now).expect("the MTRRs are on");
//!     edit.ram_end(1 << 32);
//!     let buffer = Region::mmio(0xd000_0000, 0xd100_0000, MemType::WriteCombining);
//!     edit.set(buffer).expect("no RAM is there");
//!     let fitted = edit.fit().expect("else: page tables");
//!     // SAFETY: nothing but the frame buffer changes.
//!     unsafe { SYNC.change(cpu, 0, &fitted.target, kick)? }.ok()?;
//!
//!     // CPU 3 is unplugged.
//!     cpu.send_init(3);
//!     // SAFETY: it executes nothing any more.
//!     unsafe { SYNC.parked(3)? };
//!     SYNC.check(cpu, 0, kick)?.ok()?;
//!
//!     // The machine sleeps: everybody but this CPU has been stopped.
//!     SYNC.suspend(cpu, 0)?;
//!     cpu.s3(&S3::all(Scribble::Off));
//!     // SAFETY: the other CPUs wait for a SIPI.
//!     unsafe { SYNC.boot_resume(cpu, 0)? }.ok()?;
//!     for n in 1..4 {
//!         start(cpu, n)?;
//!     }
//!     SYNC.resync(cpu, 0, kick)?.ok()?;
//!     println!("{}", SYNC.report());
//!     Ok(())
//! }
//!
//! let machine = Machine::new(Config::new(2, 2));
//! machine.run(
//!     boot_cpu,
//!     |ap| {
//!         let (n, ipis) = (ap.number(), ap.ipis());
//!         let outcome = SYNC.ap_online(ap, n, |m| ipis.send(m)).expect("declared");
//!         assert_eq!(outcome.error, None);
//!         ap.sti();
//!         while ap.halt_until_ipi() {}
//!     },
//!     |cpu| {
//!         let n = cpu.number();
//!         SYNC.attend(cpu, n).expect("no sibling is stuck");
//!     },
//! )?;
//! assert_eq!(SYNC.report().out_of_sync().count(), 0);
//! # Ok(()) }
//! # #[cfg(not(feature = "sim"))] fn main() {}
//! ```
//!
//! # Each call
//! | call | CPU | interrupts | when | `Err` |
//! |---|---|---|---|---|
//! | [`boot_init`] | boot | as they are | once, before any AP | nothing was done |
//! | [`starting`] | the one that sends the SIPI | masked until it is sent | before each SIPI | do not send it |
//! | [`hold_point`] | any | masked while held | in wait loops of the bring-up | a sibling is stuck, or a wrong number |
//! | [`state`] | any | as they are | waiting for an AP | a wrong number |
//! | [`ap_online`] | the AP | masked | first thing after each SIPI | the AP was not touched: halt it |
//! | [`attend`] | any but the boot CPU | masked while it takes part | in the kick's handler, or polled | it did not take part; the report says more |
//! | [`resync`], [`check`] | boot | masked | when all are up; whenever one wants to know | see below |
//! | [`change`] | boot | masked | another map | see below |
//! | [`offline`], [`parked`] | any | as they are | after it stopped, before anybody else is kicked | a wrong number |
//! | [`suspend`] | boot | as they are | before S3 | not suspended: do not sleep, or sleep without |
//! | [`suspend_aborted`] | boot | as they are | the machine did not sleep | it was not suspended |
//! | [`boot_resume`] | boot | as they are | first thing after S3 | nothing was done |
//! | [`target`], [`report`], [`platform`] | any | as they are | ever | ask again |
//!
//! # Orders
//! * **Boot**: `boot_init`; for each AP, or for all together: `starting`, SIPI; each AP `ap_online`;
//!   when all are `Running`: `resync`. Under `early` it finds nothing to do but for those that were
//!   postponed; under `deferred` it does everything.
//! * **Hot-plug**: the same for one CPU. No other takes part, unless it is a thread of the same core.
//! * **Hot-unplug**: move its work away; on the CPU itself mask interrupts, say so, halt (or send it
//!   INIT); then `offline`; then no more kicks to it. A rendezvous called before that waits for it in
//!   vain, and changes nothing.
//! * **S3**: stop the APs; `suspend`; sleep. After the wake `boot_resume` first, before anything that
//!   relies on caches or on the PAT; then as at boot. APs need not be declared offline.
//! * **S3 without `suspend`**, which firmware or a hypervisor may spring on a kernel: `boot_resume` all
//!   the same. It restores the target of before. What `suspend` adds is that it takes over what was
//!   written to the boot CPU behind this crate's back, and that no CPU is started meanwhile.
//! * **Devices after S3**: an adapter may wake without its addresses. The target has its ranges still:
//!   first `boot_resume`, the APs and `resync`, then the drivers give the devices their old addresses.
//!   Who gives one another address edits the target first: [`layout::Edit`](crate::layout::Edit)
//!   and `change`.
//!
//! # Errors, and what to do
//! | error | what it means | do |
//! |---|---|---|
//! | [`Error::Missing`] | CPUs did not come; nothing was changed | `report` names them: kick again, or stop them and `offline`; then again |
//! | [`Error::Stuck`] | they came and did not finish | the others did; stop those, `offline`, `starting`, SIPI |
//! | [`Error::SiblingStuck`] | a thread is in its window for longer than `finish` | the same for that thread |
//! | [`Error::OutOfSync`] | CPUs whose registers refuse | `report` says which register; `resync` tries again; else park them |
//! | [`Error::ApicIdDiffers`] | the place or the number is another CPU's | a bug in the table of CPUs: the MADT's APIC id is meant, not its UID |
//! | [`Error::ApicIdTaken`] | one id, two numbers | the same |
//! | [`Error::TopologyUnknown`], [`Error::SiblingsNotHeld`] | the CPU is *postponed* | nothing: the next `resync` does it |
//! | [`Error::WriteFault`], [`Error::WriteIgnored`] | a hypervisor or SMM owns the register | [`Left`] says what is in force |
//! | [`Error::NoMtrr`], [`Error::NoPat`] | in [`platform`]: none, or a guest's that are not its own | nothing: what there is is kept equal |
//! | [`Error::Busy`] | in a rendezvous | `attend`, then again |
//!
//! # Targets and flags
//! A kernel that executes an SSE instruction while CR4.OSFXSR is clear dies of it, before it can say so;
//! and an interrupt on the same stack overwrites the red zone. Built for a host target, this crate has SSE
//! in [`boot_init`] already: `core` was compiled with it, and the compiler uses it to copy a struct.
//!
//! | target, flags | SSE, x87 | red zone |
//! |---|---|---|
//! | `x86_64-unknown-none`, which is soft-float | none | none |
//! | the same, `-C relocation-model=static -C code-model=kernel`: for the last 2 GiB | none | none |
//! | `x86_64-unknown-linux-gnu`, the same, `-C no-redzone=yes -C target-feature=-sse,-sse2`, `lto = "fat"` | none | none |
//! | `x86_64-unknown-linux-gnu` as it is | in `boot_init` already | used |
//!
//! All by the object code, in the tests of `examples/c`, with stable Rust. The third is for machines that
//! cannot install the first: the compiler warns that it will be refused one day. A kernel built like the
//! fourth sets CR4.OSFXSR before its first call, on every CPU; takes interrupts on stacks of their own
//! (IST); and saves vector registers in the kick's handler and in that of #GP. A C kernel links the static
//! library of `examples/c`, built like one of the first three.
//!
//! # Words
//! One for each thing, the manuals' or Linux's. The *boot CPU*; an *AP*, any other logical processor.
//! *Siblings*: threads of one core. The *target*: the state every CPU is to have, with its *epoch*.
//! *In sync*, or in line: a CPU that holds it. A *window*: a CPU's MTRRs are written, its caches off.
//! A sibling is *held* while it stands still for a window. The *rendezvous*: all CPUs come, the boot
//! CPU commits, all act. *Early*: each AP is brought in line as it comes; *deferred*: all are in the
//! rendezvous; *postponed*: an early one was left to it. *Torn*: a CPU whose MTRRs could neither be
//! written nor put back, and are off. A *kick*: the interrupt whose handler calls `attend`.
//!
//! [`boot_init`]: crate::sync::CacheSync::boot_init
//! [`starting`]: crate::sync::CacheSync::starting
//! [`hold_point`]: crate::sync::CacheSync::hold_point
//! [`state`]: crate::sync::CacheSync::state
//! [`ap_online`]: crate::sync::CacheSync::ap_online
//! [`attend`]: crate::sync::CacheSync::attend
//! [`resync`]: crate::sync::CacheSync::resync
//! [`check`]: crate::sync::CacheSync::check
//! [`change`]: crate::sync::CacheSync::change
//! [`offline`]: crate::sync::CacheSync::offline
//! [`parked`]: crate::sync::CacheSync::parked
//! [`suspend`]: crate::sync::CacheSync::suspend
//! [`suspend_aborted`]: crate::sync::CacheSync::suspend_aborted
//! [`boot_resume`]: crate::sync::CacheSync::boot_resume
//! [`target`]: crate::sync::CacheSync::target
//! [`report`]: crate::sync::CacheSync::report
//! [`platform`]: crate::sync::CacheSync::platform

#[cfg(doc)]
use crate::error::{Error, Left};
