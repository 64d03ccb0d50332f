/*
 * MTRR and PAT bring-up for kernels in C: the functions of examples/c, made from its sources by the test
 * `header_is_up_to_date` (MTRR_PAT_BLESS=1 writes it anew). README.md has the order of the calls.
 *
 * What every call asks of the kernel (the "duties of this library"): privilege level 0 in 64-bit mode, on
 * one CPU from its start to its end; nobody else changes MTRRs, PAT, CR0.CD, CR0.NW or CR4.PGE of that CPU
 * meanwhile; code, stack and data stay mapped; NMI and machine-check handlers call nothing in here, and
 * touch little: caches may be off; `me` is the number of the CPU that calls. No vector unit is used.
 */

#ifndef MTRR_PAT_H
#define MTRR_PAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * CPUs there is room for: numbers are below this.
 */
#define MTRR_PAT_CPUS 256

/**
 * Bytes of `mtrr_pat_info.text`, with the zero at its end.
 */
#define MTRR_PAT_TEXT 232

/**
 * Variable ranges in `struct mtrr_pat_registers`; a machine has fewer.
 */
#define MTRR_PAT_VARIABLE 40

/**
 * Fixed-range registers in `struct mtrr_pat_registers`.
 */
#define MTRR_PAT_FIXED 11

/**
 * Uncachable.
 */
#define MTRR_PAT_UC 0

/**
 * Write-combining.
 */
#define MTRR_PAT_WC 1

/**
 * Write-through.
 */
#define MTRR_PAT_WT 4

/**
 * Write-protected.
 */
#define MTRR_PAT_WP 5

/**
 * Write-back.
 */
#define MTRR_PAT_WB 6

/**
 * Uncachable unless the MTRR says write-combining: of pages only.
 */
#define MTRR_PAT_UC_MINUS 7

/**
 * AMD's CD, an answer of `mtrr_pat_effective` only: not cached, but caches are probed.
 */
#define MTRR_PAT_CD 8

/**
 * What a function returns. `mtrr_pat_name` and `mtrr_pat_text` put it into words.
 */
enum mtrr_pat_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * All is well.
   */
  MTRR_PAT_OK = 0,
  /**
   * The machine has no usable MTRRs.
   */
  MTRR_PAT_NO_MTRR = 1,
  /**
   * The machine has no PAT.
   */
  MTRR_PAT_NO_PAT = 2,
  /**
   * More variable ranges than MSRs for them (`value`: MTRRCAP's count).
   */
  MTRR_PAT_TOO_MANY_VARIABLE = 3,
  /**
   * RDMSR of `msr` raised #GP. No MTRR was written.
   */
  MTRR_PAT_READ_FAULT = 4,
  /**
   * WRMSR of `value` to `msr` raised #GP; `left` says what is in force.
   */
  MTRR_PAT_WRITE_FAULT = 5,
  /**
   * The target does not fit this CPU's MTRRCAP (`value`); no MTRR was written.
   */
  MTRR_PAT_CAP_DIFFERS = 6,
  /**
   * `mtrr_pat_boot_init` has not succeeded yet.
   */
  MTRR_PAT_NOT_INITIALISED = 7,
  /**
   * It was called already.
   */
  MTRR_PAT_ALREADY_INITIALISED = 8,
  /**
   * The number `cpu` is not below MTRR_PAT_CPUS.
   */
  MTRR_PAT_CPU_OUT_OF_RANGE = 9,
  /**
   * CPU `cpu` came without being declared starting; left as it is.
   */
  MTRR_PAT_NOT_DECLARED = 10,
  /**
   * CPU `cpu` came a second time; left as it is.
   */
  MTRR_PAT_ARRIVED_TWICE = 11,
  /**
   * CPU `cpu` is starting or running already.
   */
  MTRR_PAT_ALREADY_DECLARED = 12,
  /**
   * CPU `cpu` came with another APIC id (`value`) than it was declared with; left as it is.
   */
  MTRR_PAT_APIC_ID_DIFFERS = 13,
  /**
   * The APIC id (`value`) is CPU `cpu`'s; not declared.
   */
  MTRR_PAT_APIC_ID_TAKEN = 14,
  /**
   * Another rendezvous is under way: `mtrr_pat_attend`, and again.
   */
  MTRR_PAT_BUSY = 15,
  /**
   * `count` CPUs did not come, `cpu` first; nothing was changed.
   */
  MTRR_PAT_MISSING = 16,
  /**
   * `count` CPUs came and did not finish, `cpu` first; the others did.
   */
  MTRR_PAT_STUCK = 17,
  /**
   * The sibling `cpu` is in its window for too long.
   */
  MTRR_PAT_SIBLING_STUCK = 18,
  /**
   * Which threads share a core is not known: left to the next rendezvous.
   */
  MTRR_PAT_TOPOLOGY_UNKNOWN = 19,
  /**
   * The sibling `cpu` did not answer: left to the next rendezvous.
   */
  MTRR_PAT_SIBLINGS_NOT_HELD = 20,
  /**
   * The target was being replaced while it was read: again.
   */
  MTRR_PAT_TARGET_BUSY = 21,
  /**
   * `msr` of the wanted target is invalid; nothing was changed.
   */
  MTRR_PAT_INVALID_TARGET = 22,
  /**
   * The wanted target is another machine's; nothing was changed.
   */
  MTRR_PAT_FOREIGN_TARGET = 23,
  /**
   * The machine is suspended: no CPU starts, and none meet.
   */
  MTRR_PAT_SUSPENDED = 24,
  /**
   * The machine is not suspended.
   */
  MTRR_PAT_NOT_SUSPENDED = 25,
  /**
   * A time on the command line that no healthy CPU can keep.
   */
  MTRR_PAT_BOUND_TOO_SHORT = 26,
  /**
   * `count` CPUs are not in line; the report says why.
   */
  MTRR_PAT_OUT_OF_SYNC = 27,
  /**
   * Only the boot CPU may do this.
   */
  MTRR_PAT_NOT_BOOT_CPU = 28,
  /**
   * The boot CPU cannot be declared gone.
   */
  MTRR_PAT_IS_BOOT_CPU = 29,
  /**
   * `msr` was written and cannot be read back; `left` says what is in force.
   */
  MTRR_PAT_READ_BACK_FAULT = 30,
  /**
   * `msr` does not hold `value` after the write; `left` says what is in force.
   */
  MTRR_PAT_WRITE_IGNORED = 31,
  /**
   * An error that this header is too old for: `text` has it.
   */
  MTRR_PAT_OTHER = 32,
  /**
   * The range cannot have that type by MTRRs (too few registers, RAM, alignment: `text` says
   * which): by page tables it can. Nothing was changed.
   */
  MTRR_PAT_NO_LAYOUT = 33,
  /**
   * A type that does not exist, a NULL where a pointer must be.
   */
  MTRR_PAT_BAD_ARGUMENT = 34,
  /**
   * No slot of the PAT holds the type or one that may stand in for it.
   */
  MTRR_PAT_NO_SLOT = 35,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mtrr_pat_code mtrr_pat_code;
#else
typedef uint32_t mtrr_pat_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Where a CPU is in its life.
 */
enum mtrr_pat_cpu_state
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Not started, or gone: it executes nothing.
   */
  MTRR_PAT_ABSENT = 0,
  /**
   * Declared before its SIPI; its siblings count it as running.
   */
  MTRR_PAT_STARTING = 1,
  /**
   * Past its `mtrr_pat_ap_online`.
   */
  MTRR_PAT_RUNNING = 2,
  /**
   * Cannot run until it is declared starting again.
   */
  MTRR_PAT_PARKED = 3,
  /**
   * A number that is not below MTRR_PAT_CPUS.
   */
  MTRR_PAT_NO_SUCH_CPU = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mtrr_pat_cpu_state mtrr_pat_cpu_state;
#else
typedef uint32_t mtrr_pat_cpu_state;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a call came to, in full. Every call that takes one sets all of it; NULL is taken where nobody
 * wants it.
 */
struct mtrr_pat_info {
  /**
   * 1: the call was carried out, and an error is about registers, of this CPU or of those that met.
   * 0: it was refused, and nothing was done, or not to the end.
   */
  uint32_t done;
  /**
   * What the call returned: an `enum mtrr_pat_code`.
   */
  uint32_t code;
  /**
   * The CPU an error is about, or the first of `count`.
   */
  uint32_t cpu;
  /**
   * How many CPUs an error is about.
   */
  uint32_t count;
  /**
   * The register an error is about.
   */
  uint32_t msr;
  /**
   * What a failed write left in force: an `enum mtrr_pat_left`.
   */
  uint32_t left;
  /**
   * The value an error is about: of a register, or an APIC id.
   */
  uint64_t value;
  /**
   * boot_init, ap_online, boot_resume: ticks of the time-stamp counter it took.
   */
  uint64_t ticks;
  /**
   * resync, check, change: generation of the target; suspend too.
   */
  uint32_t epoch;
  /**
   * resync, check, change: CPUs that took part.
   */
  uint32_t cpus;
  /**
   * resync, check, change: CPUs that differed when they were compared.
   */
  uint32_t differed;
  /**
   * resync, check, change: CPUs that are not in line now.
   */
  uint32_t out_of_sync;
  /**
   * attend: an `enum mtrr_pat_attendance`.
   */
  uint32_t attendance;
  /**
   * boot_init, ap_online, boot_resume: the MTRR and PAT groups that differed before (0: none).
   */
  uint32_t changes;
  /**
   * The error, or what was done, as a line of text. Cut off where it is too long.
   */
  char text[MTRR_PAT_TEXT];
};

/**
 * Makes CPU `cpu` call `mtrr_pat_attend` soon, by an interrupt; `context` is what the caller gave. It
 * takes no lock that its caller may hold, and returns at once. The write of an x2APIC's ICR needs
 * `mfence; lfence` before it.
 */
typedef void (*mtrr_pat_kick)(size_t cpu, void *context);

/**
 * Takes one line of text, zero-terminated, without a newline; `context` is what the caller gave.
 */
typedef void (*mtrr_pat_line)(const char *line, void *context);

/**
 * What every CPU is to have: the words of the registers.
 */
struct mtrr_pat_registers {
  /**
   * Generation: another one after each change.
   */
  uint32_t epoch;
  /**
   * How many variable ranges the machine has; 0 without MTRRs.
   */
  uint32_t variable_count;
  /**
   * IA32_MTRR_DEF_TYPE.
   */
  uint64_t def_type;
  /**
   * IA32_PAT; 0 where there is none.
   */
  uint64_t pat;
  /**
   * IA32_MTRR_FIX64K_00000, then 16K_80000, 16K_A0000, 4K_C0000 .. 4K_F8000.
   */
  uint64_t fixed[MTRR_PAT_FIXED];
  /**
   * IA32_MTRR_PHYSBASEn.
   */
  uint64_t base[MTRR_PAT_VARIABLE];
  /**
   * IA32_MTRR_PHYSMASKn.
   */
  uint64_t mask[MTRR_PAT_VARIABLE];
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The name of a code: "MTRR_PAT_MISSING"; "?" for a number that is none. Any CPU, any time.
 */
const char *mtrr_pat_name(uint32_t code);

/**
 * A code in plain English, without the numbers that `mtrr_pat_info.text` has. Any CPU, any time.
 */
const char *mtrr_pat_text(uint32_t code);

/**
 * Finds out what the machine can do, takes this CPU's registers as the target for all, and programs the
 * PAT the command line asks for. A machine without MTRRs or PAT is not an error.
 *
 * CPU: the boot CPU, whose number is `me` from now on, once, before any AP runs. Interrupts: as they
 * are. Needs: privilege level 0 in 64-bit mode; no vector unit.
 *
 * `command_line`: the kernel's, zero-terminated, or NULL: `mtrr_pat=early|deferred`,
 * `pat=linux|keep|..`, `gather=`, `hold=`, `finish=` with times, `nopat`, `nowc`; a later word wins over
 * an earlier one, so what the kernel itself wants is put in front. A word that is mistaken is logged
 * (`mtrr_pat_log_to`), and the rest is taken. `tsc_hz`: ticks of the time-stamp counter in a second, or
 * 0 to take CPUID's word.
 *
 * Returns OK; or, with `info->done` 0, why nothing was done; with 1, what is wrong with this CPU's
 * registers.
 *
 * # Safety
 * As said; and what is mapped through slots of the PAT may have the types it is given: no RAM through
 * one that becomes WC. `command_line` and `info` point where they say, or are NULL.
 */
mtrr_pat_code mtrr_pat_boot_init(size_t me,
                                 const char *command_line,
                                 uint64_t tsc_hz,
                                 struct mtrr_pat_info *info);

/**
 * Declares that CPU `cpu`, with this APIC id (the MADT's, not its UID), is about to get its SIPI.
 *
 * CPU: the one, `me`, that sends it; interrupts stay masked from before this call until it is sent. What
 * the kernel wrote for the AP must be visible before the SIPI: an x2APIC's ICR needs `mfence; lfence`.
 *
 * Returns OK; anything else: it is not declared, do not start it. BUSY: `mtrr_pat_attend`, and again.
 *
 * # Safety
 * As said; the SIPI goes to that CPU, and what later calls with this number is that CPU.
 */
mtrr_pat_code mtrr_pat_starting(size_t cpu, uint32_t apic_id, struct mtrr_pat_info *info);

/**
 * Brings this AP in line, or checks it in for the rendezvous, as the command line said.
 *
 * CPU: AP `me`, first thing after each SIPI, best with CR0.CD as reset left it. Interrupts: masked. It
 * needs no APIC but for `kick`, which asks a sibling to stand still; NULL: a sibling that polls
 * `mtrr_pat_attend` or `mtrr_pat_hold_point` is waited for, and this CPU left to the rendezvous if none
 * answers. Afterwards it takes interrupts, or polls `mtrr_pat_attend`.
 *
 * Returns OK; with `info->done` 0: this CPU was not touched, and may have caches off: halt it. With 1 it
 * runs on with the types it came with (or, `info->left` TORN, with none) until `mtrr_pat_resync`.
 *
 * # Safety
 * As said; `me` is this CPU's own number; `kick` is what its type says.
 */
mtrr_pat_code mtrr_pat_ap_online(size_t me, mtrr_pat_kick kick, void *context, struct mtrr_pat_info *info);

/**
 * Where CPU `cpu` is in its life. Any CPU, interrupts as they are: for who waits for an AP, and calls
 * `mtrr_pat_hold_point` between looks.
 */
mtrr_pat_cpu_state mtrr_pat_state(size_t cpu);

/**
 * Declares that CPU `cpu` executes nothing any more: it did not come up (send it INIT first, it may be
 * late), or was unplugged: it masked its interrupts, said so, and halted. Afterwards nobody kicks it.
 *
 * CPU: any other. Interrupts: as they are. Returns OK, or why it was not declared.
 *
 * # Safety
 * It executes nothing until it is declared starting: others turn the caches of its core off.
 */
mtrr_pat_code mtrr_pat_offline(size_t cpu, struct mtrr_pat_info *info);

/**
 * As `mtrr_pat_offline`, for a CPU that the kernel stopped on purpose: the report says parked.
 *
 * # Safety
 * As for `mtrr_pat_offline`.
 */
mtrr_pat_code mtrr_pat_parked(size_t cpu, struct mtrr_pat_info *info);

/**
 * For the kernel's handler of #GP (vector 13), before anything else: where to go on if the fault at
 * `rip` was an MSR access of this library: put it into the saved RIP, leave every register as it was,
 * and IRETQ. 0: any other fault. On any CPU, interrupts as they are; touches no memory but the stack.
 */
uint64_t mtrr_pat_fixup(uint64_t rip);

/**
 * What every CPU did last, in a few lines: CPUs by what they did, by what differed, errors.
 *
 * CPU: any, complete once all are up or met. Interrupts: as they are. `line` gets each.
 *
 * # Safety
 * `line` is what its type says.
 */
void mtrr_pat_report(mtrr_pat_line line, void *context);

/**
 * Has the library's log printed: one line of what was found at boot, warnings, the report of a
 * rendezvous that did not end well; with `verbose` of every one. On the boot CPU only, with interrupts
 * as its caller has them. Before `mtrr_pat_boot_init`; a NULL `line` ends it.
 *
 * # Safety
 * `line` is what its type says, for as long as it is set; not called while another CPU is in a call.
 */
void mtrr_pat_log_to(mtrr_pat_line line, void *context, bool verbose);

/**
 * Reads the target. Any CPU, interrupts as they are. Returns OK; TARGET_BUSY: again.
 *
 * # Safety
 * `registers` may be written to, or is NULL.
 */
mtrr_pat_code mtrr_pat_target(struct mtrr_pat_registers *registers, struct mtrr_pat_info *info);

/**
 * Gives all CPUs other registers, all at once: as `mtrr_pat_target` read them, and edited; or as they
 * were before, to go back. `epoch` and `variable_count` are not looked at.
 *
 * CPU: the boot CPU `me`. Interrupts: masked throughout. Returns as `mtrr_pat_resync`; INVALID_TARGET,
 * FOREIGN_TARGET: nothing was changed.
 *
 * # Safety
 * As for `mtrr_pat_resync`; and no memory that is in use loses the type it needs.
 */
mtrr_pat_code mtrr_pat_change(size_t me,
                              const struct mtrr_pat_registers *registers,
                              mtrr_pat_kick kick,
                              void *context,
                              struct mtrr_pat_info *info);

/**
 * Gives `start` up to, not including, `end` (multiples of 4096) a type by MTRRs, on all CPUs at once:
 * write-combining for a frame buffer. Plans with the fewest registers; all RAM, which ends at
 * `ram_end` (of the firmware's memory map), keeps its types, and so does everything below 4 GiB.
 *
 * CPU: the boot CPU `me`. Interrupts: masked while CPUs meet. `type` is MTRR_PAT_UC, WC, WT, WP or WB.
 * Takes up to 32 KiB of stack, before CPUs meet. `info->text` says what it came to.
 *
 * Returns as `mtrr_pat_resync`; NO_LAYOUT: nothing was changed, and page tables can do it:
 * `mtrr_pat_page_bits`. To go back: `mtrr_pat_target` before, and `mtrr_pat_change`.
 *
 * # Safety
 * As for `mtrr_pat_change`.
 */
mtrr_pat_code mtrr_pat_set_range(size_t me,
                                 uint64_t start,
                                 uint64_t end,
                                 uint32_t type,
                                 uint64_t ram_end,
                                 mtrr_pat_kick kick,
                                 void *context,
                                 struct mtrr_pat_info *info);

/**
 * Stands still for a sibling whose caches are off, and takes part in the rendezvous that is open, if it
 * wants this CPU; returns at once otherwise. All that the handler of the kick interrupt has to do, its
 * EOI before or after; or in any loop this CPU waits in.
 *
 * CPU: any, `me` its number. Interrupts: masked while it takes part. `info->attendance` says how it
 * went; NULL costs least.
 *
 * Returns OK; or this CPU did not take part, or not to the end: the next rendezvous brings it in line.
 *
 * # Safety
 * The duties of this library on this CPU; `me` is its own number.
 */
mtrr_pat_code mtrr_pat_attend(size_t me, struct mtrr_pat_info *info);

/**
 * Stands still for as long as a sibling has its caches off, or asks to; returns at once otherwise. In
 * every wait loop of the bring-up that does not call `mtrr_pat_attend`.
 *
 * CPU: any, `me` its number. Interrupts: masked while it is held. Returns OK; SIBLING_STUCK: this CPU
 * goes on, with the caches of its core off.
 *
 * # Safety
 * As for `mtrr_pat_attend`.
 */
mtrr_pat_code mtrr_pat_hold_point(size_t me, struct mtrr_pat_info *info);

/**
 * Has every running CPU meet, and brings those in line that differ from the target: that checked in,
 * were postponed, failed, or were written to since.
 *
 * CPU: the boot CPU `me`, when all APs are `MTRR_PAT_RUNNING`. Interrupts: masked throughout. `kick`
 * goes to every other CPU, once more to the late ones.
 *
 * Returns OK when every CPU is in line; OUT_OF_SYNC (`info->done` 1): the report says which are not and
 * why. MISSING: nothing was changed, stop those and `mtrr_pat_offline`, then again. STUCK: the others
 * did it.
 *
 * # Safety
 * As for `mtrr_pat_attend`; `kick` is what its type says.
 */
mtrr_pat_code mtrr_pat_resync(size_t me, mtrr_pat_kick kick, void *context, struct mtrr_pat_info *info);

/**
 * Has every running CPU meet and compare, and changes nothing. As `mtrr_pat_resync` otherwise.
 *
 * # Safety
 * As for `mtrr_pat_resync`.
 */
mtrr_pat_code mtrr_pat_check(size_t me, mtrr_pat_kick kick, void *context, struct mtrr_pat_info *info);

/**
 * The kernel's, where it has one: it is told of a bug in this library, as `length` bytes of text, on
 * the CPU and with the interrupts it happened with, and does not return. Without it that CPU halts.
 */
extern void mtrr_pat_panic(const char *text, size_t length);

/**
 * Before the machine sleeps: takes over what was written to the boot CPU's registers behind this
 * library's back (`info->changes`); from now on no CPU starts, and none meet.
 *
 * CPU: the boot CPU `me`, after the APs were stopped or are about to be. Interrupts: as they are. Nobody
 * has to be declared offline. Returns OK; else the machine is not suspended.
 *
 * # Safety
 * The duties of this library on this CPU.
 */
mtrr_pat_code mtrr_pat_suspend(size_t me, struct mtrr_pat_info *info);

/**
 * The machine did not sleep: takes `mtrr_pat_suspend` back. Any CPU, interrupts as they are. Returns OK
 * or NOT_SUSPENDED.
 */
mtrr_pat_code mtrr_pat_suspend_aborted(struct mtrr_pat_info *info);

/**
 * Gives the boot CPU back what S3 took. All other CPUs are absent then: `mtrr_pat_starting` and so on,
 * as at boot.
 *
 * CPU: the boot CPU `me`, first thing after the wake, before anything relies on caches or on the PAT.
 * Interrupts: as they are. Returns OK; with `info->done` 0 nothing was done, with 1 this CPU's registers
 * refuse.
 *
 * # Safety
 * The other CPUs execute nothing, but a wait for their SIPI.
 */
mtrr_pat_code mtrr_pat_boot_resume(size_t me, struct mtrr_pat_info *info);

/**
 * The page-table bits that give a page a type, in the PAT all CPUs have.
 *
 * CPU: any. Interrupts: as they are. `type`: one of MTRR_PAT_UC to MTRR_PAT_UC_MINUS. `large`: for an
 * entry that maps 2 MiB or 1 GiB, whose PAT bit is another. `*bits`: what to OR into the entry, whose
 * bits 3, 4 and 7 (12 in a large one) are clear. `*granted`: the type it will be, the same or one that
 * caches less and may stand in.
 *
 * Returns OK; NO_SLOT; NO_PAT: there is none, and the type cannot be had by PCD and PWT;
 * NOT_INITIALISED; BAD_ARGUMENT.
 *
 * # Safety
 * `bits` and `granted` may be written to, or are NULL.
 */
mtrr_pat_code mtrr_pat_page_bits(uint32_t type, bool large, uint64_t *bits, uint32_t *granted);

/**
 * The type that memory really has: the MTRRs' of a physical address, together with the PAT's of the
 * entry that maps it, by this processor's table.
 *
 * CPU: any. Interrupts: as they are. `entry`: the leaf's page-table entry; `large`: it maps 2 MiB or
 * 1 GiB. `*effective`: MTRR_PAT_UC, WC, WT, WP, WB or CD; `*mtrr`: what the MTRRs alone say. What the
 * manuals leave undefined is UC.
 *
 * Returns OK; NOT_INITIALISED; TARGET_BUSY: again; BAD_ARGUMENT: the entry's slot holds no type.
 *
 * # Safety
 * `effective` and `mtrr` may be written to, or are NULL.
 */
mtrr_pat_code mtrr_pat_effective(uint64_t address,
                                 uint64_t entry,
                                 bool large,
                                 uint32_t *effective,
                                 uint32_t *mtrr);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MTRR_PAT_H */
