//! What the boot loader says: the command line, where the ACPI tables start, where RAM is, and what there is to draw on.

use core::ops::Range;
use core::ptr;
use heapless::Vec;
use multiboot2::{
    BootInformation, FramebufferField, FramebufferTag, FramebufferType, MemoryAreaType,
};

/// EBX pointed at a PVH start-info block (`boot.s` passes 1), or at Multiboot2 information (GRUB's own magic number).
const PVH: u32 = 1;
const MULTIBOOT2: u32 = 0x36d7_6289;

/// Longest command line kept.
const LINE: usize = 1024;

/// Most ranges of memory kept.
const MOST_RANGES: usize = 64;

pub struct BootInfo {
    line: [u8; LINE],
    length: usize,
    /// Physical address of the RSDP, or 0 when it has to be searched in the BIOS area.
    pub rsdp: usize,
    /// First byte above all memory that the loader calls usable, or 0 when it does not say.
    pub ram_end: u64,
    /// The usable memory.
    pub ram: Vec<Range<u64>, MOST_RANGES>,
    pub display: Display,
}

/// What the loader left to draw on.
#[derive(Clone, Copy)]
pub enum Display {
    /// It does not say: on a BIOS machine, text.
    Unknown,
    /// A VGA text screen, and where its memory is.
    Text(usize),
    Pixels(Framebuffer),
}

/// A picture in memory.
#[derive(Clone, Copy)]
pub struct Framebuffer {
    pub address: u64,
    /// Bytes from one line to the next.
    pub pitch: u32,
    /// In points.
    pub width: u32,
    pub height: u32,
    /// Bits of a point.
    pub bits: u8,
    /// Where red, green and blue are in a point.
    pub fields: [Field; 3],
}

/// Some bits of a point, from `position` on.
#[derive(Clone, Copy)]
pub struct Field {
    pub position: u8,
    pub size: u8,
}

impl BootInfo {
    /// Copies what is needed out of the loader's memory, which S3 or our own use of low memory may overwrite.
    ///
    /// # Safety
    /// `magic` and `address` are what the loader passed.
    pub unsafe fn read(magic: u32, address: usize) -> Self {
        let mut info = Self {
            line: [0; LINE],
            length: 0,
            rsdp: 0,
            ram_end: 0,
            ram: Vec::new(),
            display: Display::Unknown,
        };
        match magic {
            // SAFETY: as the caller says.
            PVH => unsafe { info.read_pvh(address) },
            // SAFETY: as the caller says.
            MULTIBOOT2 => unsafe { info.read_multiboot2(address) },
            _ => {}
        }
        info
    }

    pub fn command_line(&self) -> &str {
        core::str::from_utf8(&self.line[..self.length]).unwrap_or("")
    }

    /// Start-info block: magic, version, flags, modules (u32 each), module list, command line, RSDP (u64 each); from version 1 on
    /// the memory map (u64) and the number of its entries (u32).
    unsafe fn read_pvh(&mut self, address: usize) {
        // SAFETY: the block is at least 40 bytes.
        let line: u64 = unsafe { ptr::read_unaligned((address + 24) as *const u64) };
        // SAFETY: likewise.
        self.rsdp = unsafe { ptr::read_unaligned((address + 32) as *const u64) } as usize;
        // SAFETY: a zero-terminated string, if there is one.
        unsafe { self.copy_line(line as usize) };
        // SAFETY: as for the line.
        let version: u32 = unsafe { ptr::read_unaligned((address + 4) as *const u32) };
        if version >= 1 {
            // SAFETY: a block of this version is 56 bytes.
            let map: u64 = unsafe { ptr::read_unaligned((address + 40) as *const u64) };
            // SAFETY: likewise.
            let entries: u32 = unsafe { ptr::read_unaligned((address + 48) as *const u32) };
            // SAFETY: as the block says.
            unsafe { self.read_memory_map(map as usize, entries as usize) };
        }
    }

    /// Entries of 24 bytes: first byte, bytes (u64 each) and kind (u32); 1 is usable memory.
    unsafe fn read_memory_map(&mut self, map: usize, entries: usize) {
        if map == 0 {
            return;
        }
        for at in (map..map + 24 * entries).step_by(24) {
            // SAFETY: inside the map.
            let [start, size]: [u64; 2] = unsafe { ptr::read_unaligned(at as *const _) };
            // SAFETY: likewise.
            let kind: u32 = unsafe { ptr::read_unaligned((at + 16) as *const u32) };
            if kind == 1 {
                self.add_ram(start, start.saturating_add(size));
            }
        }
    }

    /// # Safety
    /// `address` is what the loader passed.
    unsafe fn read_multiboot2(&mut self, address: usize) {
        // SAFETY: as the caller says.
        let Ok(info) = (unsafe { BootInformation::load(address as *const _) }) else {
            return;
        };
        if let Some(line) = info.command_line_tag().and_then(|tag| tag.cmdline().ok()) {
            self.length = line.len().min(LINE);
            self.line[..self.length].copy_from_slice(&line.as_bytes()[..self.length]);
        }
        for area in info
            .memory_map_tag()
            .map_or(&[][..], |map| map.memory_areas())
        {
            if area.typ() == MemoryAreaType::Available {
                self.add_ram(area.start_address(), area.end_address());
            }
        }
        // A copy of the RSDP stands behind the head of its tag.
        const HEAD: usize = 8;
        let older = || info.rsdp_v1_tag().map(|tag| &raw const *tag as usize);
        let newer = info.rsdp_v2_tag().map(|tag| &raw const *tag as usize);
        self.rsdp = newer.or_else(older).map_or(0, |tag| tag + HEAD);
        if let Some(Ok(tag)) = info.framebuffer_tag() {
            self.display = display(tag);
        }
    }

    fn add_ram(&mut self, start: u64, end: u64) {
        self.ram_end = self.ram_end.max(end);
        // One more than there is room for is left out: what lies in it is judged without it.
        let _ = self.ram.push(start..end);
    }

    unsafe fn copy_line(&mut self, address: usize) {
        if address == 0 {
            return;
        }
        while self.length < LINE {
            // SAFETY: up to the terminating zero.
            let byte = unsafe { ptr::read((address + self.length) as *const u8) };
            if byte == 0 {
                break;
            }
            self.line[self.length] = byte;
            self.length += 1;
        }
    }
}

fn display(tag: &FramebufferTag) -> Display {
    let field = |field: FramebufferField| Field {
        position: field.position,
        size: field.size,
    };
    match tag.buffer_type() {
        Ok(FramebufferType::RGB { red, green, blue }) => Display::Pixels(Framebuffer {
            address: tag.address(),
            pitch: tag.pitch(),
            width: tag.width(),
            height: tag.height(),
            bits: tag.bpp(),
            fields: [red, green, blue].map(field),
        }),
        Ok(FramebufferType::Text) => Display::Text(tag.address() as usize),
        _ => Display::Unknown,
    }
}
