//! A model of Linux's /proc/mtrr as its source has it, apart from the program's own.

use serde_json::Value;

/// A range of one type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    start: u64,
    size: u64,
    name: String,
}

impl Range {
    /// A range of the type with this long name.
    pub fn new(start: u64, size: u64, name: &str) -> Self {
        Self {
            start,
            size,
            name: name.into(),
        }
    }

    fn last(&self) -> u64 {
        self.start + self.size - 1
    }

    fn has(&self, addr: u64) -> bool {
        (self.start..=self.last()).contains(&addr)
    }
}

/// The kernel's registers.
#[derive(Clone, Debug)]
pub struct Kernel {
    slots: Vec<Option<Range>>,
    default: String,
    floor: u64,
    /// Where memory above 4 GiB is WB by TOP_MEM2.
    forced: std::ops::Range<u64>,
    end: u64,
}

/// The name in /proc/mtrr.
fn long(name: &str) -> String {
    match name {
        "UC" => "uncachable",
        "WC" => "write-combining",
        "WT" => "write-through",
        "WP" => "write-protect",
        "WB" => "write-back",
        other => panic!("{other} is no type"),
    }
    .into()
}

fn number(value: &Value) -> u64 {
    let text = value.as_str().expect("addresses are strings");
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("hexadecimal")
}

impl Kernel {
    /// So many registers, nothing in them.
    pub fn blank(count: usize) -> Self {
        Self {
            slots: vec![None; count],
            default: "uncachable".into(),
            floor: 0x10_0000,
            forced: 0..0,
            end: 1 << 36,
        }
    }

    /// What `--json` says a machine has; with this default type, where its dump does not say.
    pub fn of(object: &Value, assumed: &str) -> Self {
        let end = 1u64 << object["phys_bits"].as_u64().expect("bits");
        let slot = |pair: &Value| {
            // What the dump does not show is taken for free, as the lines do.
            pair["mask"].as_str()?;
            let size = (!number(&pair["mask"]) & (end - 1)) + 1;
            let name = long(pair["type"].as_str().expect("a name"));
            let start = number(&pair["base"]) & number(&pair["mask"]) & (end - 1);
            pair["valid"]
                .as_bool()
                .expect("a bool")
                .then(|| Range::new(start, size, &name))
        };
        let slots: Vec<Option<Range>> = object["variable"]
            .as_array()
            .expect("a list")
            .iter()
            .map(slot)
            .collect();
        let forced = number_or(&object["top_mem2_write_back"]);
        Self {
            slots,
            default: object["default"].as_str().map_or(assumed.into(), long),
            floor: if object["fixed_enabled"] == false {
                0
            } else {
                0x10_0000
            },
            forced: 1 << 32..forced,
            end,
        }
    }

    pub fn default_name(&self) -> String {
        self.default.clone()
    }

    pub fn total(&self) -> usize {
        self.slots.len()
    }

    pub fn used(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    pub fn sorted(&self) -> Vec<Range> {
        let mut ranges: Vec<Range> = self.slots.iter().flatten().cloned().collect();
        ranges.sort();
        ranges
    }

    /// Has these ranges instead.
    pub fn hold(&mut self, ranges: &[Range]) {
        self.slots = ranges.iter().cloned().map(Some).collect();
    }

    /// Ranges that `other` does not have.
    pub fn arriving(&self, other: &Self) -> usize {
        let theirs = other.sorted();
        self.sorted()
            .iter()
            .filter(|range| !theirs.contains(range))
            .count()
    }

    /// Write-back ranges that `other` does not have.
    pub fn leaving(&self, other: &Self) -> usize {
        let theirs = other.sorted();
        let gone = |range: &&Range| range.name == "write-back" && !theirs.contains(range);
        self.sorted().iter().filter(gone).count()
    }

    /// Whether an uncachable range goes and others come inside it.
    pub fn is_split(&self, after: &Self) -> bool {
        let (old, new) = (self.sorted(), after.sorted());
        let gone = old
            .iter()
            .filter(|range| range.name == "uncachable" && !new.contains(range));
        let inside =
            |outer: &Range, range: &Range| outer.has(range.start) && outer.has(range.last());
        gone.clone().any(|outer| {
            new.iter()
                .any(|range| !old.contains(range) && inside(outer, range))
        })
    }

    /// Takes one shell line.
    pub fn write(&mut self, line: &str) -> Result<(), String> {
        let inner = line
            .strip_prefix("echo \"")
            .and_then(|rest| rest.strip_suffix("\" > /proc/mtrr"));
        let inner = inner.ok_or("no such line")?;
        if let Some(register) = inner.strip_prefix("disable=") {
            let register: usize = register.parse().map_err(|_| "no number")?;
            let slot = self.slots.get_mut(register).ok_or("no such register")?;
            return slot.take().map(|_| ()).ok_or("not used".into());
        }
        let words: Vec<&str> = inner.split(' ').collect();
        let [base, size, name] = words.as_slice() else {
            return Err("not three words".into());
        };
        let hex = |word: &str, key: &str| {
            let digits = word
                .strip_prefix(key)
                .and_then(|word| word.strip_prefix("=0x"));
            digits
                .and_then(|digits| u64::from_str_radix(digits, 16).ok())
                .ok_or(format!("no {key}"))
        };
        let name = name.strip_prefix("type=").ok_or("no type")?;
        self.add(Range::new(hex(base, "base")?, hex(size, "size")?, name))
    }

    /// mtrr_add_page().
    fn add(&mut self, new: Range) -> Result<(), String> {
        if !new.size.is_power_of_two() || !new.start.is_multiple_of(new.size) {
            return Err("base is not aligned on size boundary".into());
        }
        if new.last() >= self.end {
            return Err("base or size exceeds the MTRR width".into());
        }
        let mut replace: Option<usize> = None;
        let mut several = false;
        for (index, slot) in self.slots.iter().enumerate() {
            let Some(old) = slot else { continue };
            if new.start > old.last() || new.last() < old.start {
                continue;
            }
            let fits = compatible(&new.name, &old.name);
            if new.start < old.start || new.last() > old.last() {
                if new.start <= old.start && new.last() >= old.last() {
                    if new.name == old.name {
                        several |= replace.is_some();
                        replace = Some(index);
                        continue;
                    }
                    if fits {
                        continue;
                    }
                }
                return Err("overlaps existing".into());
            }
            if new.name == old.name {
                return Err("only counted: it is inside one of its type".into());
            }
            if !fits {
                return Err("type mismatch".into());
            }
        }
        let free = self.slots.iter().position(Option::is_none);
        let place = if several { free } else { replace.or(free) };
        self.slots[place.ok_or("no more MTRRs available")?] = Some(new);
        Ok(())
    }

    /// Whether memory that is cached before and after is uncached, and whether what is not
    /// cacheable before and after is cacheable.
    pub fn harm(&self, before: &Self, after: &Self) -> (bool, bool) {
        let mut edges = vec![self.floor, self.forced.start, self.forced.end];
        for kernel in [self, before, after] {
            for range in kernel.slots.iter().flatten() {
                edges.extend([range.start, range.last() + 1]);
            }
        }
        edges.retain(|edge| *edge >= self.floor && *edge < self.end);
        let cold = |name: &str| ["uncachable", "write-combining"].contains(&name);
        let mut harm = (false, false);
        for at in edges {
            let (old, now, new) = (before.at(at), self.at(at), after.at(at));
            harm.0 |= !cold(&old) && !cold(&new) && now == "uncachable";
            harm.1 |= cold(&old) && cold(&new) && !cold(&now);
        }
        harm
    }

    /// The type of one address above the fixed ranges.
    fn at(&self, addr: u64) -> String {
        let mut names: Vec<&str> = self
            .slots
            .iter()
            .flatten()
            .filter(|range| range.has(addr))
            .map(|range| range.name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        match names.as_slice() {
            [] if self.forced.contains(&addr) => "write-back".into(),
            [] => self.default.clone(),
            [one] => (*one).into(),
            ["write-back", "write-through"] => "write-through".into(),
            _ => "uncachable".into(),
        }
    }
}

fn number_or(value: &Value) -> u64 {
    if value.is_null() { 0 } else { number(value) }
}

/// types_compatible().
fn compatible(one: &str, other: &str) -> bool {
    let cached = |name: &str| ["write-back", "write-through"].contains(&name);
    one == "uncachable" || other == "uncachable" || one != other && cached(one) && cached(other)
}
