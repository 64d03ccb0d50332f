//! What the lines of a kernel mean, and what to do about them.

use mtrr_pat::ranges::FIXED_END;

use super::dump::{Dump, Hint};
use super::findings::{Finding, Severity};
use super::kernel_bsd;
use super::kernel_clean_up;
use super::kernel_drivers;
use super::kernel_pages;
use super::kernel_plain;
use super::machine::Machine;
use super::subject::Subject;
use super::system::System;
use super::words;

/// One finding for each subject that the kernel had something to say about.
pub fn findings(machine: &Machine) -> Vec<Finding> {
    let hints = &machine.dump.hints;
    let mut subjects: Vec<Subject> = hints.iter().map(|hint| hint.subject).collect();
    subjects.sort_unstable();
    subjects.dedup();
    let explained: Vec<Subject> = subjects
        .iter()
        .copied()
        .filter(|subject| !follows(*subject, &subjects))
        .filter(|subject| *subject != Subject::Nvidia || machine.has_nothing_else())
        // Refused mappings that are told in full need no second finding.
        .filter(|subject| {
            *subject != Subject::Conflict || machine.dump.page_types.refused.is_empty()
        })
        .collect();
    explained
        .into_iter()
        .filter_map(|subject| finding(machine, subject))
        .collect()
}

/// Whether a subject is only the consequence of another in the same log.
fn follows(subject: Subject, all: &[Subject]) -> bool {
    let has = |other: Subject| all.contains(&other);
    match subject {
        Subject::DriverWithout => has(Subject::Refused) || has(Subject::NoneFree),
        Subject::NotThere => has(Subject::Refused),
        Subject::CleanedUp => has(Subject::Trimmed),
        // These lines come before either end of the clean-up.
        Subject::CleanUpFailed => has(Subject::CleanedUp),
        Subject::NoPat => has(Subject::Off),
        Subject::PageType | Subject::MappedRam | Subject::Aperture => has(Subject::Conflict),
        // Its other lines say nothing of memory types: only where there is nothing else to say.
        Subject::Nvidia => all.len() > 1,
        _ => false,
    }
}

fn finding(machine: &Machine, subject: Subject) -> Option<Finding> {
    let dump = &machine.dump;
    let mut of = dump.hints.iter().filter(|hint| hint.subject == subject);
    let first = of.next()?;
    let more = of.count();
    let (severity, meaning, fix) = meaning(machine, subject, first);
    let more = match more {
        0 => String::new(),
        1 => " (and one line more)".into(),
        more => format!(" (and {more} lines more)"),
    };
    Some(Finding {
        severity,
        kind: "kernel-message".into(),
        range: None,
        bytes: 0,
        text: format!(
            "line {}, the kernel says: {}{more}: {meaning}",
            first.line, first.text
        ),
        fix,
    })
}

/// How bad, what it means, what to do.
pub type Answer = (Severity, String, String);

fn meaning(machine: &Machine, subject: Subject, first: &Hint) -> Answer {
    let has = |subject| {
        machine
            .dump
            .hints
            .iter()
            .any(|hint| hint.subject == subject)
    };
    match subject {
        Subject::Trimmed => kernel_clean_up::trimmed(machine, first, has(Subject::CleanedUp)),
        Subject::Refused => kernel_drivers::refused(first),
        Subject::NoneFree => kernel_drivers::none_free(machine),
        Subject::DriverWithout => kernel_drivers::driver_without(),
        Subject::Off => off(machine),
        Subject::CleanUpFailed => kernel_clean_up::clean_up_failed(&machine.dump),
        Subject::Conflict => kernel_pages::conflict(first),
        Subject::NotExpressible => kernel_drivers::not_expressible(first),
        Subject::MapCount => map_count(machine),
        Subject::CleanedUp => kernel_clean_up::cleaned_up(&machine.dump),
        Subject::BsdWithout => kernel_bsd::without(first),
        Subject::Aperture => kernel_pages::aperture(),
        Subject::SendBuffers => kernel_drivers::send_buffers(first),
        Subject::NvidiaTypes => kernel_pages::nvidia(first),
        Subject::Found => found(machine),
        Subject::Inconsistent => inconsistent(machine),
        Subject::HugePage => huge_page(machine, first),
        Subject::Tested => tested(first),
        Subject::BsdTool => kernel_bsd::tool(first),
        Subject::TakenAway => kernel_drivers::taken_away(first),
        _ => kernel_plain::answer(subject),
    }
}

fn inconsistent(machine: &Machine) -> Answer {
    let (put_right, fix) = match machine.dump.system {
        System::Windows => (
            "Windows tells its debugger so",
            "update the firmware (of a virtual machine: the one it starts with)",
        ),
        _ => (
            "the kernel put it right for itself",
            "update the firmware, and look again after sleep (S3), when firmware runs again",
        ),
    };
    let meaning = format!("firmware programmed CPUs differently; {put_right}");
    (Severity::Warning, meaning, fix.into())
}

/// `Cannot satisfy [mem 0x80200000-0x80400000] with a huge-page mapping due to MTRR override`.
fn huge_page(machine: &Machine, first: &Hint) -> Answer {
    let range = first
        .text
        .split("[mem ")
        .nth(1)
        .and_then(|rest| rest.split(']').next());
    let range = range.and_then(|range| range.split_once('-'));
    let range = range.and_then(|(a, b)| Some((words::hex(a)?, words::hex(b)?)));
    let uniform = range.is_some_and(|(start, end)| machine.has_one_type(start, end));
    let (meaning, fix) = match uniform {
        true => (
            "the map in the input has one type there, so a large page would do: the kernel looks \
             the type up wrongly, and maps it in small pages: a little slower, nothing else",
            "update the kernel; the map needs no change",
        ),
        false => (
            "ranges of different types lie in that large page, so the kernel maps it in small \
             ones: a little slower, nothing else",
            "",
        ),
    };
    (Severity::Info, meaning.into(), fix.into())
}

/// fwts: `Memory range 0x1000 to 0x8dfff (System RAM) has incorrect attribute`.
fn tested(first: &Hint) -> Answer {
    let end = first
        .text
        .split(" to ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    if end.and_then(words::hex).is_some_and(|end| end < FIXED_END) {
        let meaning = "fwts looks at /proc/mtrr, which has the variable ranges alone: below 1 MiB \
                       the fixed ranges decide, so this says nothing about the memory there";
        return (Severity::Info, meaning.into(), "nothing".into());
    }
    let meaning = "fwts compares /proc/iomem with /proc/mtrr, and takes what no range covers for \
                   uncached: right where that is the default type, wrong for all RAM where \
                   firmware made the default write-back";
    let fix = "see the default type (`dmesg | grep \"MTRR default type\"`), then whether a range \
               covers that memory: paste /proc/mtrr";
    (Severity::Warning, meaning.into(), fix.into())
}

fn off(machine: &Machine) -> Answer {
    if machine.dump.hypervisor.is_some() {
        let meaning = "the hypervisor offers none, or left them off: it decides what memory is";
        return (Severity::Info, meaning.into(), String::new());
    }
    let meaning = "firmware left the MTRRs off, or the kernel found none: on a real machine with \
                   MTRRs all memory is then uncachable and everything slow; in a virtual machine \
                   the hypervisor decides";
    let fix = "on a real machine: update the firmware, reset its settings";
    (Severity::Warning, meaning.into(), fix.into())
}

fn map_count(machine: &Machine) -> Answer {
    let count = machine.dump.stated_count;
    let count = count.map_or(String::new(), |n| format!("{n} variable ranges exist; "));
    let which = match machine.dump.kernel_map.entries.is_empty() {
        true => "this kernel (6.5 or later) prints which only when asked",
        false => "the list that goes with it is the map the kernel made of them",
    };
    let meaning = format!("{count}{which}");
    (Severity::Info, meaning, String::new())
}

/// OpenBSD: `mtrr: Pentium Pro MTRR support, 8 var ranges, 88 fixed ranges`.
fn found(machine: &Machine) -> Answer {
    let meaning = match machine.dump.stated_count {
        Some(0) => {
            "the processor has no variable ranges, as in a virtual machine: the hypervisor decides \
             what memory is, and there is nothing to set"
                .into()
        }
        Some(count) => format!("the kernel uses the MTRRs, {count} variable ranges"),
        None => "the kernel uses the MTRRs".into(),
    };
    (Severity::Info, meaning, String::new())
}

/// Whether lines of the kernel, and no register, are what the input consists of; what it says of
/// mapped pages needs no register.
pub fn wants_registers(dump: &Dump) -> bool {
    let registers = dump.cpus.values().any(super::regs::Regs::has_mtrr);
    !registers && dump.hints.iter().any(|hint| !hint.subject.of_pages())
}
