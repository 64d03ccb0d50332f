//! Kernel logs (Linux, Xen): TOM2, the PAT line, the machine, complaints. The MTRR block and the RAM
//! map have files of their own.

use mtrr_pat::memtype::PatType;

use super::dump::Vendor;
use super::quote::quoted;
use super::read::Reader;
use super::system::System;
use super::words::{self, Line};

/// Reads one line, when it is one of these formats.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    super::read_table::line(reader, line)
        || tom2(reader, line)
        || pat(reader, line)
        || super::read_ram::line(reader, line)
        || machine(reader, line)
        || super::read_said::line(reader, line)
}

/// `TOM2: 0000000130000000 aka 4864M`: Linux prints it only with both TOM2 enables set. Xen has
/// twelve digits, and ` (WB)` where the second is: `TOM2: 000130000000 (WB)`.
fn tom2(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some(text) = line.after("TOM2: ") else {
        return false;
    };
    reader.dump.vendor = Vendor::Amd;
    let mut words = text.split_whitespace();
    let digits = words.next().unwrap_or("");
    let forced = match (digits.len(), words.next()) {
        (16, _) | (12, Some("(WB)")) => true,
        (12, None) => false,
        _ => {
            let why = "TOM2 is not sixteen hexadecimal digits";
            reader.dump.complain(line.number, why);
            return true;
        }
    };
    match words::hex(digits) {
        Some(value) => {
            use mtrr_pat::regs::SysCfg;
            let regs = reader.dump.cpu(0);
            regs.top_mem2 = Some(value);
            let mut bits = SysCfg::MTRR_TOM2_EN;
            if forced {
                bits |= SysCfg::TOM2_FORCE_WB;
            }
            regs.syscfg.get_or_insert(bits.raw());
        }
        None => reader
            .dump
            .complain(line.number, "TOM2 is not a hexadecimal number"),
    }
    true
}

/// "x86 PAT enabled: cpu 0, old .., new ..", "x86/PAT: Configuration [0-7]: WB .." and the like.
pub fn pat(reader: &mut Reader, line: &Line<'_>) -> bool {
    if line.text.contains("PAT: Configuration") || line.text.contains("PAT configuration") {
        reader.registers_come();
    }
    if line.text.contains("PAT enabled: cpu") {
        let old = line.atom_after("old").and_then(words::hex);
        let new = line.atom_after("new").and_then(words::hex);
        let (Some(old), Some(new)) = (old, new) else {
            reader
                .dump
                .complain(line.number, "cut short: PAT line without old and new");
            return true;
        };
        reader.dump.cpu(0).pat.get_or_insert(old);
        reader.dump.pat_after = Some(new);
    } else if let Some(names) = line
        .after("PAT configuration [0-7]:")
        .or_else(|| line.after("PAT: Configuration [0-7]:"))
    {
        match pat_names(names) {
            Some(word) => {
                reader.dump.cpu(0).pat.get_or_insert(word);
            }
            None => reader.dump.complain(line.number, "not eight PAT types"),
        }
    } else if line.text.contains("PAT not supported by CPU")
        || line.text.contains("PAT not supported by the CPU")
    {
        reader.dump.no_pat = true;
    } else {
        return false;
    }
    true
}

/// Eight short names, slot 0 first.
fn pat_names(text: &str) -> Option<u64> {
    let mut names = text.split_whitespace().map(words::pat_type);
    let mut word = 0;
    for slot in 0..8 {
        let memtype: PatType = names.next()??;
        word |= u64::from(memtype.raw()) << (slot * 8);
    }
    Some(word)
}

/// Most words of a command line kept.
const MOST_OPTIONS: usize = 16;

/// Vendor, hypervisor, which kernel, its command line.
fn machine(reader: &mut Reader, line: &Line<'_>) -> bool {
    if let Some((major, minor)) = line.after("Linux version ").and_then(version) {
        reader.dump.new_linux = (major, minor) >= (6, 5);
        reader.registers_came = false;
        return true;
    }
    if let Some(system) = System::of_version(line).or_else(|| System::of_guest(line)) {
        reader.dump.system = system;
        return true;
    }
    if let Some(words) = line.after("ommand line: ") {
        let ours = |word: &&str| word.contains("mtrr") || *word == "nopat";
        let options = &mut reader.dump.options;
        // Linux prints it twice.
        for word in words.split_whitespace().filter(ours) {
            let word = quoted(word, 60);
            if options.len() < MOST_OPTIONS && !options.contains(&word) {
                options.push(word);
            }
        }
        return true;
    }
    if let Some(name) = line.after("Hypervisor detected:") {
        reader.dump.hypervisor = Some(quoted(name.trim(), 40));
    } else if line.text.contains("CPUM: Mapped ") {
        reader.dump.hypervisor = Some("VirtualBox".into());
        return false;
    } else if line.text.contains("innotek GmbH") {
        reader.dump.hypervisor.get_or_insert("VirtualBox".into());
    } else if let Some(name) = line.after("pvbus0 at mainbus0: ") {
        // OpenBSD.
        let name = quoted(name.trim(), 40);
        reader.dump.hypervisor.get_or_insert(name);
    } else if let Some(text) = line.after("PGM: The CPU physical address width is ") {
        // VirtualBox, of the guest.
        let bits = text.split(' ').next().and_then(|bits| bits.parse().ok());
        let words = || "PGM: The CPU physical address width".into();
        reader.dump.stated_bits = bits
            .map(|bits| (bits, words()))
            .or(reader.dump.stated_bits.take());
        reader.dump.hypervisor = Some("VirtualBox".into());
    } else if let Some(values) = line.after("CPUID level 80000008, 0: ") {
        // VMware: the low byte of EAX is the width; the host's comes first, then the guest's.
        let eax = values.split_whitespace().next().and_then(words::hex);
        let bits = eax.map(|eax| eax as u8).filter(|bits| *bits > 0);
        if let Some(bits) = bits {
            reader.dump.stated_bits = Some((bits, "CPUID level 80000008".into()));
        }
        reader.dump.hypervisor.get_or_insert("VMware".into());
    } else if line.text.contains("CPU0: AMD") || line.text.contains("CPU: AMD") {
        reader.dump.vendor = Vendor::Amd;
    } else if line.text.contains("CPU0: Intel") || line.text.contains("CPU: Intel") {
        reader.dump.vendor = Vendor::Intel;
    } else {
        return false;
    }
    true
}

/// `6.5.12-300.fc39.x86_64 ..` as 6 and 5.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
