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
//!     // Longer than `hold`, for which an AP may have to wait for a sibling: a second, where that is 100 ms.
//!     let since = cpu.rdtsc();
//!     while cpu.rdtsc() - since < 1_000_000_000 {
//!         if SYNC.state(n)? == CpuState::Running {
//!             return Ok(());
//!         }
//!         SYNC.hold_point(cpu, 0)?;
//!         cpu.work(10_000);
//!     }
//!     println!("CPU {n} does not come");
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
//!     // A frame buffer in write-combining, for whoever maps it UC-. Where all mappings are one's own,
//!     // `Policy::pat` and a slot of the PAT do the same, and take no MTRR.
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
//!     // The machine sleeps: everybody but this CPU has been stopped. On hardware the kernel asks each AP
//!     // by an interrupt to mask its own, to say so, and to halt, and waits for all of them to say so.
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
//! # Adopt it
//! In a kernel of the kind that starts from `bootloader`, Limine or Multiboot: three steps, each of
//! which shows something. Needed before: a serial line, an IDT, and a
//! logger of the `log` crate, which this crate's warnings go to. No heap.
//!
//! 1. **The boot CPU.** `mtrr-pat = "0.2"`; a `static SYNC: CacheSync<N>`; after the IDT is loaded
//!    `unsafe { SYNC.boot_init(&mut NativeCpu::claim_catching(), 0, Policy::DEFAULT) }`, with
//!    [`catching::fixup`](crate::cpu::native::catching::fixup) asked in the handler of #GP; print
//!    [`target`].
//! 2. **The APs.** `starting` before the SIPI, `ap_online` first thing in the AP, once it has a stack:
//!    `state` says `Running`. Limine has started them already and parks them in a loop: there
//!    `starting` comes before the write of `goto_address`, which is its SIPI; `bootloader` and
//!    Multiboot leave them waiting for a real one.
//! 3. **An interrupt**, whose handler calls `attend`; then `resync`, and print [`report`].
//!
//! What you see when it works, on QEMU with four CPUs:
//!
//! ```text
//! memory types: 8 variable MTRRs, fixed yes; 40 bits physical
//! memory types of 4 CPUs, 0 out of sync; CPUs by path:
//!   in_sync       0
//!   window        1-3
//!  CPUs that differed, by group:
//!   fixed         1-3
//!   variable      1-3
//!   default       1-3
//! target 1: rendezvous of 4 CPUs, 0 differed, 0 out of sync
//! ```
//!
//! And what you see when it does not:
//!
//! | you see | because |
//! |---|---|
//! | nothing, and a reset | code with SSE before CR4.OSFXSR is set, see below; or no IDT |
//! | a #GP at `rdmsr` or `wrmsr` | `claim`, where a register refuses: `claim_catching` and `fixup` |
//! | no line at all | no logger is set; or its level is above `Info` |
//! | `read only` in the first line | a hypervisor owns them: only compared |
//! | `no usable MTRRs on this machine` | a guest without; its PAT is kept equal all the same |
//! | `APIC id 0x2 ... came with 0x1` | the table of CPUs has something else for APIC ids |
//! | `starting or running already` | a second `starting` without `offline` |
//! | the AP never comes back from `ap_online` | it never does without a stack; else it returns in `hold` at most |
//! | `sibling CPU 0 did not answer a hold` | the boot CPU waits without `hold_point`, or the kick does not reach it |
//! | `CPU(s) did not come to the rendezvous` | the kick's handler is not there, does not call `attend`, or no EOI |
//! | `never_came` in the report | it was given up: late (longer patience than `hold`), or its id is in no table |
//! | `... differ`, again after each boot | firmware or SMM writes: [`diagnose`](crate::diagnose) says what |
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
//!   postponed; under `deferred` it does everything. One that is not `Running` in time is sent INIT and
//!   declared `offline`; the time is longer than [`hold`](crate::policy::Bounds::hold), in which an AP
//!   whose sibling does not answer is postponed. `Ok` of a rendezvous is about the CPUs that run: how
//!   many those are is [`Summary::cpus`](crate::sync::Summary::cpus), which the kernel compares with its
//!   own table; who was given up is in the report.
//! * **Hot-plug**: the same for one CPU, with the number it had or a new one. No other takes part, unless
//!   it is a thread of the same core.
//! * **Hot-unplug**: move its work away; on the CPU itself mask interrupts, say so, halt (or send it
//!   INIT); then `offline`; then no more kicks to it. A rendezvous called before that waits for it in
//!   vain, and changes nothing.
//! * **S3**: stop the APs; `suspend`; sleep. After the wake `boot_resume` first, before anything that
//!   relies on caches or on the PAT; then as at boot, a counter of CPUs set back included. APs need not be
//!   declared offline; interrupts are as they are, on hardware masked since before `suspend`.
//! * **S3 without `suspend`**, which firmware or a hypervisor may spring on a kernel: `boot_resume` all
//!   the same. It restores the target of before. What `suspend` adds is that it takes over what was
//!   written to the boot CPU behind this crate's back, and that no CPU is started meanwhile.
//! * **Devices after S3**: an adapter may wake without its addresses. The target has its ranges still:
//!   first `boot_resume`, the APs and `resync`, then the drivers give the devices their old addresses.
//!   Who gives one another address edits the target first: [`layout::Edit`](crate::layout::Edit)
//!   and `change`.
//!
//! # Recipes
//! **No APIC yet, numbers of their own, a locked table, interrupts off.** An AP that cannot send an
//! interrupt when it calls `ap_online` passes a `kick` that does nothing: whoever waits polls
//! [`hold_point`] or [`attend`], and the boot CPU, which has its APIC, sends what is [`awaited`].
//!
//! * *Whoever waits* is also an AP between its `ap_online` and its first `sti`: in a spin on a lock, the
//!   table's above all, it calls `attend`. One that does not is held by nobody, and its sibling is
//!   postponed after `hold`.
//! * A kick that comes before an AP has its APIC is lost. `awaited` names the CPU until it attends, so the
//!   loop below sends it again; in a rendezvous the boot CPU kicks again at half of `gather`. The
//!   simulated machine loses none, and cannot show it.
//! * A counter that APs bump does not go with [`Place::Apic`]: who comes first is not who was sent the
//!   first SIPI. An AP that knows itself by its APIC id alone asks [`own_number`], and uses a counter for
//!   other purposes at most. Handlers ask it too, or keep the number where the CPU finds it (GS).
//! * **`None`** says that nobody declared this id: the table is wrong (the MADT's processor UID, most
//!   often). The AP leaves its id where the boot CPU finds it and halts; nothing else would tell, for the
//!   number that was meant is only never heard of.
//! * A `kick` runs while others wait. It takes no lock that the CPU it interrupts may hold, and none of
//!   the table of CPUs while that is being walked to start them: the ids are copied first.
//! * Locked instructions of an AP before its `ap_online` (or, deferred, before the rendezvous) are bus locks
//!   while its MTRRs are off: slow for all, and a #AC or #GP where the machine forbids them. Loads and
//!   stores do.
//!
//! ```
//! # #[cfg(feature = "sim")] fn main() -> Result<(), mtrr_pat::error::Error> {
//! use std::sync::Mutex;
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! use mtrr_pat::cpu::CpuidReader;
//! use mtrr_pat::prelude::*;
//! use mtrr_pat::regs::MtrrDefType;
//! use mtrr_pat::sim::{Config, Machine, SimCpu};
//! use mtrr_pat::topology::own_apic_id;
//!
//! static SYNC: CacheSync<16> = CacheSync::new();
//! static TABLE: Mutex<Vec<u32>> = Mutex::new(Vec::new()); // APIC ids; `TABLE[n - 1]` is CPU n's
//! static STRANGER: AtomicU32 = AtomicU32::new(u32::MAX); // the id of an AP that nobody declared
//!
//! fn boot_cpu(cpu: &mut SimCpu<'_>) -> Result<(), Error> {
//!     // SAFETY: no AP runs yet.
//!     unsafe { SYNC.boot_init(cpu, 0, Policy::DEFAULT)? }.ok()?;
//!     // Copied: on the simulated machine no lock of the host's may be held while others run, and on a real
//!     // one the kick needs it.
//!     let table = TABLE.lock().unwrap().clone();
//!     cpu.cli();
//!     for (i, &apic_id) in table.iter().enumerate() {
//!         // SAFETY: it finds the number by this id.
//!         unsafe { SYNC.starting(cpu, i + 1, Place::Apic(apic_id))? };
//!     }
//!     for n in 1..=table.len() {
//!         cpu.send_init_sipi(n); // all at once
//!     }
//!     let ipis = cpu.ipis();
//!     while (1..=table.len()).any(|n| SYNC.state(n) != Ok(CpuState::Running)) {
//!         SYNC.hold_point(cpu, 0)?; // interrupts are masked here all the time
//!         SYNC.awaited().filter(|&n| n != 0).for_each(|n| ipis.send(n));
//!         assert_eq!(STRANGER.load(Ordering::Relaxed), u32::MAX, "an id that is in no table");
//!         cpu.work(10_000);
//!     }
//!     cpu.sti();
//!     let summary = SYNC.resync(cpu, 0, |n| ipis.send(n))?;
//!     assert_eq!(summary.cpus as usize, 1 + table.len(), "all of them");
//!     summary.ok()
//! }
//!
//! let mut config = Config::new(4, 2);
//! config.aps.def_type = MtrrDefType::from_raw(0); // APs come with their MTRRs off
//! let machine = Machine::new(config);
//! *TABLE.lock().unwrap() = (1..8).map(|n| machine.config().apic_id(n)).collect();
//! machine.run(
//!     boot_cpu,
//!     |ap| {
//!         let Some(n) = SYNC.own_number(ap) else {
//!             return STRANGER.store(own_apic_id(&CpuidReader(ap)), Ordering::Relaxed);
//!         };
//!         let outcome = SYNC.ap_online(ap, n, |_| ()).expect("and starts");
//!         assert_eq!(outcome.error, None);
//!         ap.sti();
//!         while ap.halt_until_ipi() {}
//!     },
//!     |cpu| {
//!         let n = SYNC.own_number(cpu).expect("it runs");
//!         SYNC.attend(cpu, n).expect("no sibling is stuck");
//!     },
//! )?;
//! assert_eq!(SYNC.report().out_of_sync().count(), 0);
//! # Ok(()) }
//! # #[cfg(not(feature = "sim"))] fn main() {}
//! ```
//!
//! **More CPUs than room**: `starting` says [`Error::CpuOutOfRange`] for a number that is not below the
//! `CPUS` of [`CacheSync`](crate::sync::CacheSync). Such a CPU is not started: one that runs
//! undeclared is held by nobody's window. The state of a number is 256 bytes, so be generous.
//!
//! **Sparse numbers** (a kernel that uses APIC ids): cost the bytes up to the highest, nothing else. Or
//! number them densely in the order of `starting`, and ask [`own_number`].
//!
//! **More than one state**: one [`CacheSync`](crate::sync::CacheSync) a machine. Two would each hold the
//! other's windows for nothing; a second one is for a bench, while nobody uses the first.
//!
//! **A PAT layout that is chosen late**: `boot_init` with [`PatChoice::Keep`], and later
//! [`change`] to a target whose [`pat`](crate::snapshot::Snapshot::pat) is the layout.
//!
//! **MSR wrappers of one's own**: [`NativeCpu::claim_with`](crate::cpu::native::NativeCpu::claim_with).
//!
//! **A frame buffer mapping of one's own**: [`Pat::find`](crate::pat::Pat::find) with the target's PAT
//! gives the slot and its page-table bits; [`layout`](crate::layout) says when MTRRs are better.
//!
//! # Errors, and what to do
//! | error | what it means | do |
//! |---|---|---|
//! | [`Error::Missing`] | CPUs did not come; nothing was changed | `report` names them: kick again, or stop them and `offline`; then again. All of a kind each time: the kick's way from number to APIC id is wrong |
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
//! # Under a hypervisor
//! What a guest of KVM, Hyper-V, VMware, VirtualBox, Xen and others sees, and what this crate does
//! there, is a table in [`platform`](crate::platform#under-a-hypervisor). Nothing is to be done for it,
//! but two things are to be known: APs may come without any map (QEMU's translator, VirtualBox), and a
//! hypervisor may keep the MTRRs ([`Platform::mtrr_refused`](crate::platform::Platform::mtrr_refused)):
//! then another map is not to be had, and the PAT is what is left. A kernel that wants write-combining
//! asks the PAT for it there, as everywhere.
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
//! [`own_number`]: crate::sync::CacheSync::own_number
//! [`Place::Apic`]: crate::topology::Place::Apic
//! [`awaited`]: crate::sync::CacheSync::awaited

#[cfg(doc)]
use crate::{
    error::{Error, Left},
    policy::PatChoice,
};
