//! Files of /proc: mtrr, cpuinfo, iomem, and what FreeBSD's memcontrol lists.

use super::dump::Vendor;
use super::marks::Listing;
use super::quote::quoted;
use super::read::Reader;
use super::regs::Variable;
use super::words::{self, Line};

/// Reads one line, when it is one of these formats.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    proc_mtrr(reader, line)
        || iomem(reader, line)
        || cpuinfo(reader, line)
        || memcontrol(reader, line)
}

/// `reg00: base=0x000000000 (    0MB), size= 2048MB, count=1: write-back`, old and new order.
fn proc_mtrr(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some(at) = line.words.iter().position(|word| register(word).is_some()) else {
        return false;
    };
    let Some(index) = line.words.get(at).and_then(|word| register(word)) else {
        return false;
    };
    let Some(base_text) = line.after("base=") else {
        // A line that was cut right after "regNN:" still is one.
        if line.words.len() == at + 1 {
            reader
                .dump
                .complain(line.number, "cut short: a register without a base");
            reader.dump.broken_range(index);
        }
        return line.words.len() == at + 1;
    };
    match parts(line, base_text) {
        Ok((base, size, memtype)) => {
            let own = reader.saw(Listing::Proc, 0, u32::from(index));
            if own || reader.proc_mtrr.contains_key(&index) {
                reader.proc_mtrr.clear();
                reader.dump.tables += 1;
            }
            reader.dump.tables = reader.dump.tables.max(1);
            let range = Variable::Range {
                base,
                size,
                memtype,
            };
            reader.proc_mtrr.insert(index, range);
            let count = line.after("count=").map(|text| text.trim_start());
            let count = count.and_then(|text| text.split(|c: char| !c.is_ascii_digit()).next());
            match count.and_then(|digits| digits.parse().ok()) {
                Some(count) if count > 1 => drop(reader.dump.usage.insert(index, count)),
                _ => drop(reader.dump.usage.remove(&index)),
            }
            reader.dump.listing.last_record = reader.dump.records;
        }
        // The rest may be on the next line.
        Err(why) if why.starts_with("cut short") && line.number > 0 => {
            reader.pending = Some((line.number, line.text.to_string()));
        }
        Err(why) => {
            reader.dump.complain(line.number, why);
            reader.dump.broken_range(index);
        }
    }
    true
}

/// Whether `line` is the rest of the /proc/mtrr line before, and takes both; a line before that
/// stays incomplete is noted.
pub fn continues(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some((number, text)) = reader.pending.take() else {
        return false;
    };
    let whole = format!("{text} {}", line.text);
    let whole = Line::new(number, &whole);
    let parsed = whole.after("base=").map(|base| parts(&whole, base));
    if matches!(parsed, Some(Ok(_))) && !line.text.contains("reg") {
        return proc_mtrr(reader, &whole);
    }
    let why = match whole
        .after("base=")
        .map(|base| parts(&Line::new(number, &text), base))
    {
        Some(Err(why)) => why,
        _ => "cut short",
    };
    reader.dump.complain(number, why);
    if let Some(index) = text.split_whitespace().find_map(register) {
        reader.dump.broken_range(index);
    }
    false
}

/// The number in `reg07:`.
fn register(word: &str) -> Option<u8> {
    let digits = word.strip_prefix("reg")?.strip_suffix(':')?;
    digits.parse().ok().filter(|index| *index < 40)
}

/// Base, size and type of a /proc/mtrr line, or what is wrong with it.
fn parts(line: &Line<'_>, base_text: &str) -> Result<(u64, u64, u8), &'static str> {
    let digits = base_text.split([' ', ',', '(']).next().unwrap_or("");
    let base = words::hex(digits).ok_or("the base is not a hexadecimal number")?;
    let text = line.after("size=").ok_or("cut short: no size")?;
    let digits = text
        .trim_start()
        .split([',', ':', ' '])
        .next()
        .unwrap_or("");
    let size = words::size(digits).ok_or("the size is not a number of KB or MB")?;
    let memtype = line
        .words
        .iter()
        .rev()
        .find_map(|word| words::memtype(word))
        .or_else(|| glued(line.text))
        .ok_or("cut short: no memory type")?;
    if size < 0x1000 || base.checked_add(size).is_none() {
        return Err("the size is impossible");
    }
    Ok((base, size, memtype))
}

/// A type that has lost the space or the line end after it: "write-backThe change will".
fn glued(text: &str) -> Option<u8> {
    const NAMES: [&str; 5] = [
        "write-back",
        "uncachable",
        "write-combining",
        "write-through",
        "write-protect",
    ];
    let name = NAMES.into_iter().find(|name| text.contains(name))?;
    words::memtype(name)
}

/// The addresses and the name of an entry of /proc/iomem.
fn iomem_entry<'a>(line: &Line<'a>) -> Option<(u64, u64, &'a str)> {
    let (range, name) = line.text.split_once(" : ")?;
    let (first, last) = range.trim().split_once('-')?;
    Some((words::hex(first)?, words::hex(last)?, name.trim()))
}

/// `  00100000-7ffdffff : System RAM`
fn iomem(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some((first, last, name)) = iomem_entry(line) else {
        return false;
    };
    if name != "System RAM" || last <= first {
        reader.iomem_passed |= !reader.dump.ram.is_empty() && first >= DEVICES_END;
        return false;
    }
    reader.dump.add_ram(first, last.saturating_add(1));
    true
}

/// Where each machine has its interrupt controllers and its flash: a list that was cut above it has
/// lost nothing but RAM above 4 GiB.
const DEVICES_END: u64 = 0xfec0_0000;

/// Notes that /proc/iomem was given to its end, when another line follows it.
pub fn iomem_ends(reader: &mut Reader, line: &Line<'_>) {
    if reader.iomem_passed && iomem_entry(line).is_none() {
        reader.dump.ram_whole = true;
        reader.iomem_passed = false;
    }
}

/// `address sizes`, `vendor_id`, `flags` and the topology of /proc/cpuinfo.
fn cpuinfo(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some((key, value)) = line.text.split_once(':') else {
        return false;
    };
    let (key, value) = (key.trim(), value.trim());
    match key {
        "address sizes" | "Address sizes" => {
            let bits = value.split_whitespace().next().and_then(|n| n.parse().ok());
            match bits {
                Some(bits) => reader.dump.stated_bits = Some((bits, "address sizes".into())),
                None => reader
                    .dump
                    .complain(line.number, "address sizes without a number"),
            }
        }
        "vendor_id" | "Vendor ID" => reader.dump.vendor = vendor(value),
        "flags" if value.contains("hypervisor") => {
            reader
                .dump
                .hypervisor
                .get_or_insert("CPU flag \"hypervisor\"".into());
        }
        "Hypervisor vendor" => reader.dump.hypervisor = Some(quoted(value, 40)),
        "processor" | "physical id" | "core id" => return topology(reader, key, value),
        _ => return false,
    }
    true
}

/// Takes `processor`, `physical id`, `core id`; the reader's CPU number is left alone.
fn topology(reader: &mut Reader, key: &str, value: &str) -> bool {
    let Ok(number) = value.parse::<u32>() else {
        return false;
    };
    if key == "processor" {
        if reader.dump.cores.len() < super::dump::MAX_CPUS {
            reader.dump.cores.insert(number, (0, number));
        }
        return true;
    }
    if let Some(mut entry) = reader.dump.cores.last_entry() {
        if key == "physical id" {
            entry.get_mut().0 = number;
        } else {
            entry.get_mut().1 = number;
        }
        return true;
    }
    false
}

/// The vendor by its CPUID string.
pub fn vendor(text: &str) -> Vendor {
    if text.contains("AuthenticAMD") || text.contains("HygonGenuine") {
        Vendor::Amd
    } else if text.contains("GenuineIntel") || text.contains("Shanghai") {
        Vendor::Intel
    } else {
        Vendor::Unknown
    }
}

/// FreeBSD: `0x0/0x80000000 BIOS write-back set-by-firmware active`.
fn memcontrol(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some((base, size)) = line.words.first().and_then(|word| word.split_once('/')) else {
        return false;
    };
    if !base.starts_with("0x") || !size.starts_with("0x") {
        return false;
    }
    let (Some(base), Some(size)) = (words::hex(base), words::hex(size)) else {
        return false;
    };
    let Some(memtype) = line
        .words
        .iter()
        .skip(1)
        .find_map(|word| words::memtype(word))
    else {
        return false;
    };
    if size == 0 || base.checked_add(size).is_none() {
        return false;
    }
    if line.words.contains(&"fixed-base") {
        let regs = reader.dump.cpu(0);
        regs.set_fixed_range(base, base + (size - 1), memtype);
        regs.fixed_enabled = Some(line.words.contains(&"active"));
    } else if line.words.contains(&"active") {
        let next = reader
            .proc_mtrr
            .keys()
            .next_back()
            .map_or(0, |last| last + 1);
        if next < 40 {
            let range = Variable::Range {
                base,
                size,
                memtype,
            };
            reader.proc_mtrr.insert(next, range);
        }
    }
    true
}
