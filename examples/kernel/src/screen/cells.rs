//! The VGA text screen, 80 columns of 25 rows. Its points are half characters: the upper half block in two colours.

use super::draw::{Ink, Surface};
use core::convert::Infallible;
use embedded_graphics::prelude::*;

const COLUMNS: usize = 80;
const ROWS: usize = 25;
const UPPER_HALF: u8 = 0xdf;
/// Black behind white.
const PLAIN: u8 = 0x0f;

pub struct Cells(*mut [u8; 2]);

impl Cells {
    /// # Safety
    /// A VGA adapter in text mode has its memory at `at`, which is mapped.
    pub unsafe fn new(at: usize) -> Self {
        Self(at as *mut [u8; 2])
    }

    /// Whether the memory keeps what is written.
    pub fn answers(&mut self) -> bool {
        [[b'-', PLAIN], [b' ', PLAIN]].iter().all(|&cell| {
            self.put(0, 0, cell);
            // SAFETY: the first character of the screen.
            unsafe { self.at(0, 0).read_volatile() == cell }
        })
    }

    fn at(&self, column: usize, row: usize) -> *mut [u8; 2] {
        self.0.wrapping_add(row * COLUMNS + column)
    }

    fn put(&mut self, column: usize, row: usize, cell: [u8; 2]) {
        // SAFETY: the callers stay on the screen.
        unsafe { self.at(column, row).write_volatile(cell) };
    }

    fn set(&mut self, x: usize, y: usize, ink: Ink) {
        // The colours without the intensity bit, which means blinking behind a character.
        let colour = match ink {
            Ink::Black => 0,
            Ink::White => 7,
            Ink::Green => 2,
            Ink::Amber => 6,
            Ink::Red => 4,
        };
        let (column, row) = (x, y / 2);
        // SAFETY: on the screen, as `draw_iter` sees to.
        let [kind, colours] = unsafe { self.at(column, row).read_volatile() };
        let (upper, lower) = match kind {
            UPPER_HALF => (colours & 7, colours >> 4),
            _ => (colours >> 4, colours >> 4),
        };
        let colours = match y % 2 {
            0 => lower << 4 | colour,
            _ => colour << 4 | upper,
        };
        self.put(column, row, [UPPER_HALF, colours]);
    }
}

impl OriginDimensions for Cells {
    fn size(&self) -> Size {
        Size::new(COLUMNS as u32, 2 * ROWS as u32)
    }
}

impl DrawTarget for Cells {
    type Color = Ink;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Ink>>>(
        &mut self,
        pixels: I,
    ) -> Result<(), Infallible> {
        let screen = self.bounding_box();
        for Pixel(at, ink) in pixels {
            if screen.contains(at) {
                self.set(at.x as usize, at.y as usize, ink);
            }
        }
        Ok(())
    }
}

impl Surface for Cells {
    fn text_size(&self) -> (usize, usize) {
        (COLUMNS, ROWS)
    }

    fn line(&mut self, column: usize, row: usize, text: &str) {
        for (column, byte) in (column..COLUMNS).zip(text.bytes()) {
            self.put(column, row, [byte, PLAIN]);
        }
    }
}
