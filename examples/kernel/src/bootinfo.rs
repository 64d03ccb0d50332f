//! What the boot loader says: the command line, and where the ACPI tables start.

use core::ptr;

/// EBX pointed at a PVH start-info block (`boot.s` passes 1), or at Multiboot2 information (GRUB's own magic number).
const PVH: u32 = 1;
const MULTIBOOT2: u32 = 0x36d7_6289;

/// Longest command line kept.
const LINE: usize = 1024;

pub struct BootInfo {
    line: [u8; LINE],
    length: usize,
    /// Physical address of the RSDP, or 0 when it has to be searched in the BIOS area.
    pub rsdp: usize,
    /// First byte above all memory that the loader calls usable, or 0 when it does not say.
    pub ram_end: u64,
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
            unsafe { self.read_memory_map(map as usize, 24, entries as usize * 24) };
        }
    }

    /// Entries that start with first byte, bytes (u64 each) and kind (u32), the same with both loaders; 1 is usable memory.
    unsafe fn read_memory_map(&mut self, map: usize, step: usize, bytes: usize) {
        if map == 0 || step < 20 {
            return;
        }
        for at in (map..map + bytes).step_by(step) {
            // SAFETY: inside the map.
            let [start, size]: [u64; 2] = unsafe { ptr::read_unaligned(at as *const _) };
            // SAFETY: likewise.
            let kind: u32 = unsafe { ptr::read_unaligned((at + 16) as *const u32) };
            if kind == 1 {
                self.ram_end = self.ram_end.max(start.saturating_add(size));
            }
        }
    }

    /// Tags of 8-byte alignment: type (u32), size (u32), payload. 1 is the command line, 6 the memory map
    /// (size of an entry, version, entries), 14 and 15 are copies of the RSDP.
    unsafe fn read_multiboot2(&mut self, address: usize) {
        // SAFETY: the first word is the total size.
        let total = unsafe { ptr::read_unaligned(address as *const u32) } as usize;
        let mut at = address + 8;
        while at + 8 <= address + total {
            // SAFETY: inside the information block.
            let [kind, size] = unsafe { ptr::read_unaligned(at as *const [u32; 2]) };
            match kind {
                0 => break,
                // SAFETY: a zero-terminated string.
                1 => unsafe { self.copy_line(at + 8) },
                6 => {
                    // SAFETY: inside the tag.
                    let step: u32 = unsafe { ptr::read_unaligned((at + 8) as *const u32) };
                    let bytes = (size as usize).saturating_sub(16);
                    // SAFETY: as the tag says.
                    unsafe { self.read_memory_map(at + 16, step as usize, bytes) };
                }
                // The newer copy (15) wins if both are there.
                14 if self.rsdp == 0 => self.rsdp = at + 8,
                15 => self.rsdp = at + 8,
                _ => {}
            }
            at += (size as usize).max(8).next_multiple_of(8);
        }
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
