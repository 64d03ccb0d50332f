//! The loader's frame buffer.

use super::draw::{Ink, Letters, Surface};
use crate::bootinfo::Framebuffer;
use crate::window::{self, LARGE_PAGE};
use core::convert::Infallible;
use embedded_graphics::prelude::*;
use embedded_graphics::primitives::Rectangle;
use mtrr_pat::pat::Slot;

/// First place among the window's large pages, and how many: enough for 8K pictures.
const FIRST: usize = 256;
const MOST: usize = 64;

pub struct Pixels {
    info: Framebuffer,
    at: *mut u8,
    letters: Letters,
}

impl Pixels {
    /// Maps the frame buffer. None when it has another shape than 16, 24 or 32 bits a point, or does not fit in the window.
    pub fn map(info: Framebuffer, slot: Slot) -> Option<Self> {
        let fits = matches!(info.bits, 16 | 24 | 32) && info.width >= 640 && info.height >= 350;
        let first = info.address & !(LARGE_PAGE - 1);
        let end = info.address + u64::from(info.pitch) * u64::from(info.height);
        let pages = (end - first).div_ceil(LARGE_PAGE) as usize;
        if !fits || pages > MOST {
            return None;
        }
        let mut at = core::ptr::null_mut();
        for n in (0..pages).rev() {
            let page = window::map_large(FIRST + n, first + n as u64 * LARGE_PAGE, slot);
            at = page
                .cast::<u8>()
                .wrapping_add((info.address - first) as usize);
        }
        let letters = Letters::fitting(Size::new(info.width, info.height));
        Some(Self { info, at, letters })
    }

    pub fn info(&self) -> Framebuffer {
        self.info
    }

    /// Whether the memory keeps what is written.
    pub fn answers(&self) -> bool {
        let at = self.at.cast::<u16>();
        let keeps = |value: u16| {
            // SAFETY: the first point of the picture, which is mapped.
            unsafe { at.write_volatile(value) };
            // SAFETY: likewise.
            unsafe { at.read_volatile() == value }
        };
        keeps(0x55aa) && keeps(0)
    }

    /// The bytes of a point of this colour.
    fn word(&self, ink: Ink) -> u32 {
        let parts = match ink {
            Ink::Black => [0, 0, 0],
            Ink::White => [0xff, 0xff, 0xff],
            Ink::Green => [0, 0x80, 0x20],
            Ink::Amber => [0xff, 0xb0, 0],
            Ink::Red => [0xc0, 0, 0],
        };
        let fields = self.info.fields.iter().zip(parts);
        fields.fold(0, |word, (field, part)| {
            word | (part >> (8 - field.size.min(8))) << field.position.min(31)
        })
    }

    fn put(&mut self, x: u32, y: u32, word: u32) {
        let bytes = u32::from(self.info.bits / 8);
        let at = self
            .at
            .wrapping_add((y * self.info.pitch + x * bytes) as usize);
        match bytes {
            // SAFETY: `fill_solid` stays inside the picture, which is mapped.
            4 => unsafe { at.cast::<u32>().write_volatile(word) },
            // SAFETY: likewise.
            2 => unsafe { at.cast::<u16>().write_volatile(word as u16) },
            _ => {
                for n in 0..3 {
                    // SAFETY: likewise.
                    unsafe { at.wrapping_add(n).write_volatile((word >> (8 * n)) as u8) };
                }
            }
        }
    }
}

impl OriginDimensions for Pixels {
    fn size(&self) -> Size {
        Size::new(self.info.width, self.info.height)
    }
}

impl DrawTarget for Pixels {
    type Color = Ink;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Ink>>>(
        &mut self,
        pixels: I,
    ) -> Result<(), Infallible> {
        for Pixel(at, ink) in pixels {
            self.fill_solid(&Rectangle::new(at, Size::new_equal(1)), ink)?;
        }
        Ok(())
    }

    fn fill_solid(&mut self, area: &Rectangle, ink: Ink) -> Result<(), Infallible> {
        let area = area.intersection(&self.bounding_box());
        let word = self.word(ink);
        for y in area.rows() {
            for x in area.columns() {
                self.put(x as u32, y as u32, word);
            }
        }
        Ok(())
    }
}

impl Surface for Pixels {
    fn text_size(&self) -> (usize, usize) {
        self.letters.grid(self.size())
    }

    fn line(&mut self, column: usize, row: usize, text: &str) {
        self.letters.draw(self, (column, row), text);
    }
}
