//! GDT, TSS and IDT: one GDT and TSS per CPU, one IDT for all.

use crate::percpu::MAX_CPUS;
use crate::racy::Racy;
use crate::{stacks, traps};
use x86_64::VirtAddr;
use x86_64::instructions::segmentation::{CS, DS, ES, SS, Segment};
use x86_64::instructions::tables::load_tss;
use x86_64::structures::gdt::{Descriptor, GlobalDescriptorTable};
use x86_64::structures::idt::InterruptDescriptorTable;
use x86_64::structures::tss::TaskStateSegment;

/// Interrupt stack table slots. A refused WRMSR inside the kick handler faults onto another slot than the one in use.
const IST_KICK: u16 = 0;
const IST_PROTECTION: u16 = 1;
const IST_NMI: u16 = 2;
const IST_FATAL: u16 = 3;

/// Lines of its own for each CPU: an AP fills its tables with its MTRRs as they come, uncached if need be, and a neighbour's entry
/// in the same line of somebody's cache would be written back over them.
#[repr(align(128))]
struct Own<T>(Racy<T>);

static GDT: [Own<GlobalDescriptorTable>; MAX_CPUS] =
    [const { Own(Racy::new(GlobalDescriptorTable::new())) }; MAX_CPUS];
static TSS: [Own<TaskStateSegment>; MAX_CPUS] =
    [const { Own(Racy::new(TaskStateSegment::new())) }; MAX_CPUS];
static IDT: Racy<InterruptDescriptorTable> = Racy::new(InterruptDescriptorTable::new());

/// Gives CPU `n` its tables; called by that CPU, with interrupts off, when it starts and when it comes back from S3.
pub fn load(n: usize) {
    // SAFETY: entry `n` is used by CPU `n` alone.
    let tss = unsafe { &mut *TSS[n].0.get() };
    for slot in [IST_KICK, IST_PROTECTION, IST_NMI, IST_FATAL] {
        tss.interrupt_stack_table[usize::from(slot)] =
            VirtAddr::new(stacks::interrupt_top(n, slot) as u64);
    }
    // Built anew each time: the task descriptor of a CPU that went through S3 is marked busy.
    let mut table = GlobalDescriptorTable::new();
    let code = table.append(Descriptor::kernel_code_segment());
    let data = table.append(Descriptor::kernel_data_segment());
    // SAFETY: the TSS is a static, and from here on only the CPU reads it.
    let task = table.append(Descriptor::tss_segment(unsafe { &*TSS[n].0.get() }));
    // SAFETY: entry `n` is used by CPU `n` alone.
    unsafe { *GDT[n].0.get() = table };
    // SAFETY: written above, not again while loaded.
    unsafe { (*GDT[n].0.get()).load() };
    // SAFETY: `code` is a 64-bit code segment of the table just loaded.
    unsafe { CS::set_reg(code) };
    // SAFETY: `data` is a writable data segment of that table.
    unsafe { SS::set_reg(data) };
    // SAFETY: likewise.
    unsafe { DS::set_reg(data) };
    // SAFETY: likewise.
    unsafe { ES::set_reg(data) };
    // SAFETY: `task` describes this CPU's TSS.
    unsafe { load_tss(task) };
    // SAFETY: built by `build_idt` before any CPU comes here.
    unsafe { (*IDT.get()).load() };
}

/// Fills the IDT; once, on the boot CPU, after its own GDT is loaded (the gates name that code segment).
pub fn build_idt() {
    // SAFETY: only the boot CPU runs, with interrupts off.
    let idt = unsafe { &mut *IDT.get() };
    macro_rules! gate {
        ($entry:expr, $stub:path, $ist:expr) => {{
            let address = VirtAddr::new($stub as *const () as u64);
            // SAFETY: the stub ends in IRETQ with the stack the vector leaves, or does not return.
            let options = unsafe { $entry.set_handler_addr(address) };
            // SAFETY: every slot has a stack in every TSS.
            unsafe { options.set_stack_index($ist) };
        }};
    }
    gate!(idt.divide_error, traps::divide_error, IST_FATAL);
    gate!(idt.invalid_opcode, traps::invalid_opcode, IST_FATAL);
    gate!(idt.double_fault, traps::double_fault, IST_FATAL);
    gate!(idt.invalid_tss, traps::invalid_tss, IST_FATAL);
    gate!(
        idt.segment_not_present,
        traps::segment_not_present,
        IST_FATAL
    );
    gate!(idt.stack_segment_fault, traps::stack_fault, IST_FATAL);
    gate!(idt.page_fault, traps::page_fault, IST_FATAL);
    gate!(idt.machine_check, traps::machine_check, IST_FATAL);
    gate!(idt.simd_floating_point, traps::simd, IST_FATAL);
    gate!(
        idt.general_protection_fault,
        traps::general_protection,
        IST_PROTECTION
    );
    gate!(idt.non_maskable_interrupt, traps::ignored, IST_NMI);
    gate!(idt[traps::KICK], traps::kick, IST_KICK);
    gate!(idt[traps::TIMER], traps::ignored, IST_NMI);
    gate!(idt[traps::ERROR], traps::ignored, IST_NMI);
    gate!(idt[traps::SPURIOUS], traps::ignored, IST_NMI);
}
