//! The map as a picture: a strip of types, largest first in the eye, addresses below, a legend.

use std::fmt::Write as _;

use mtrr_pat::lookup::Run;

use super::map::{self, Map};
use super::strip;

/// Most runs drawn.
const MOST: usize = 120;
const WIDTH: usize = 960;
const LEFT: usize = 20;

/// The picture, as SVG text.
pub fn draw(map: &Map, title: &str) -> String {
    let runs = map.runs.get(..map.runs.len().min(MOST)).unwrap_or_default();
    let widths = strip::widths(runs, WIDTH, 4).unwrap_or_default();
    let mut out = String::new();
    let height = 210;
    let full = WIDTH + 2 * LEFT;
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {full} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">"
    );
    let _ = writeln!(
        out,
        "<rect width=\"{full}\" height=\"{height}\" fill=\"#fff\"/>"
    );
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"26\" font-size=\"16\">{}</text>",
        escaped(title)
    );
    let mut x = LEFT;
    let mut label_end = 0;
    for (run, width) in runs.iter().zip(&widths) {
        bar(&mut out, run, x, *width);
        if x >= label_end {
            label_end = label(&mut out, run, x, full);
        }
        x += width;
    }
    legend(&mut out, runs);
    let rest = map.runs.len() - runs.len();
    let more = if rest > 0 || map.cut {
        format!(" First {} ranges only.", runs.len())
    } else {
        String::new()
    };
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{}\" fill=\"#555\">Not to scale: widths grow with the logarithm of \
         the size.{more}</text>",
        height - 12
    );
    out.push_str("</svg>\n");
    out
}

/// One run: a box, its type inside where there is room, its size and addresses as a tool tip.
fn bar(out: &mut String, run: &Run, x: usize, width: usize) {
    let name = map::short(run.memtype);
    let (fill, ink) = colours(name);
    let _ = writeln!(
        out,
        "<g><title>{:#x}-{:#x} {} {name}</title><rect x=\"{x}\" y=\"44\" width=\"{width}\" \
         height=\"56\" fill=\"{fill}\" stroke=\"#fff\"/>",
        run.start,
        run.end - 1,
        map::bytes(run.bytes())
    );
    if width >= 24 {
        let name = if name.len() > 2 { "?" } else { name };
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"77\" fill=\"{ink}\" text-anchor=\"middle\">{name}</text>",
            x + width / 2
        );
    }
    out.push_str("</g>\n");
}

/// The start address under the strip; returns where the next one may begin.
fn label(out: &mut String, run: &Run, x: usize, full: usize) -> usize {
    let text = format!("{:#x}", run.start);
    let end = x + text.len() * 8 + 8;
    if end > full {
        return x;
    }
    let _ = writeln!(
        out,
        "<path d=\"M{x} 100v8\" stroke=\"#555\"/><text x=\"{x}\" y=\"122\" font-size=\"12\">{text}</text>"
    );
    end
}

/// A box per type that occurs.
fn legend(out: &mut String, runs: &[Run]) {
    let mut x = LEFT;
    for (name, long) in [
        ("WB", "write-back"),
        ("UC", "uncachable"),
        ("WC", "write-combining"),
        ("WT", "write-through"),
        ("WP", "write-protect"),
        ("undefined", "undefined"),
    ] {
        if !runs.iter().any(|run| map::short(run.memtype) == name) {
            continue;
        }
        let (fill, _) = colours(name);
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"146\" width=\"16\" height=\"16\" fill=\"{fill}\"/>\
             <text x=\"{}\" y=\"159\">{name} {long}</text>",
            x + 22
        );
        x += 60 + 8 * (name.len() + long.len());
    }
}

/// Fill and ink; the fills differ in lightness too, for print in grey.
fn colours(name: &str) -> (&'static str, &'static str) {
    match name {
        "WB" => ("#b7e4c7", "#000"),
        "UC" => ("#1d3557", "#fff"),
        "WC" => ("#f4a261", "#000"),
        "WT" => ("#7fb7d6", "#000"),
        "WP" => ("#9d6fb8", "#fff"),
        _ => ("#d00000", "#fff"),
    }
}

/// `text` without what XML gives a meaning.
fn escaped(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .map(|c| match c {
            '<' => "&lt;".to_string(),
            '>' => "&gt;".to_string(),
            '&' => "&amp;".to_string(),
            c => c.to_string(),
        })
        .collect()
}
