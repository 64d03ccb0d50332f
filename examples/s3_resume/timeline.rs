//! What every CPU did and when, as a picture: a row per CPU, a panel per run, one scale for all.

use mtrr_pat::sim::{Activity, Config, Machine, Span};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const WIDTH: i32 = 920;
const LEFT: i32 = 74;
const RIGHT: i32 = 16;
const PLOT: i32 = WIDTH - LEFT - RIGHT;
const TITLE: i32 = 30;
const AXIS: i32 = 46;
const LEGEND: i32 = 34;
const FONT: &str = "sans-serif";

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// What is drawn, the rarest last: it goes over the others. Fills differ in lightness, for grey.
const KINDS: [(Activity, &str, RGBColor); 6] = [
    (Activity::Halted, "asleep", RGBColor(244, 244, 244)),
    (Activity::Waiting, "waiting", RGBColor(218, 218, 218)),
    (Activity::Cached, "cached", RGBColor(140, 190, 235)),
    (Activity::Uncached, "uncached", RGBColor(170, 40, 30)),
    (
        Activity::Held,
        "held (at least 2 px)",
        RGBColor(205, 110, 0),
    ),
    (
        Activity::Window,
        "in window (at least 2 px)",
        RGBColor(10, 10, 50),
    ),
];

/// One run.
pub struct Panel {
    title: String,
    start: u64,
    end: u64,
    rows: Vec<Row>,
}

struct Row {
    label: String,
    first_of_core: bool,
    spans: Vec<Span>,
}

impl Panel {
    /// What a machine did since its log was cleared.
    pub fn of(machine: &Machine, mode: &str) -> Self {
        let config = machine.config();
        let spans: Vec<Vec<Span>> = (0..config.cpus()).map(|n| machine.timeline(n)).collect();
        let start = spans[0].first().map_or(0, |span| span.start);
        let end = spans[0].last().map_or(0, |span| span.end);
        let mut order: Vec<usize> = (0..config.cpus()).collect();
        order.sort_by_key(|n| config.place(*n));
        Self {
            title: format!("{mode}: {:.0} ms", (end - start) as f64 / 1e9),
            start,
            end,
            rows: order
                .into_iter()
                .map(|n| row(&config, n, &spans[n]))
                .collect(),
        }
    }

    fn row_height(&self) -> i32 {
        (640 / self.rows.len().max(1) as i32).clamp(1, 18)
    }

    fn height(&self) -> i32 {
        TITLE + self.row_height() * self.rows.len() as i32 + 10
    }
}

fn row(config: &Config, n: usize, spans: &[Span]) -> Row {
    let (core, thread) = config.place(n);
    Row {
        label: format!("core {core}.{thread}"),
        first_of_core: thread == 0,
        spans: spans.to_vec(),
    }
}

/// The panels one above the other, as SVG text.
pub fn draw(panels: &[Panel]) -> Result<String, Box<dyn std::error::Error>> {
    let longest = panels.iter().map(|p| p.end - p.start).max().unwrap_or(0);
    let heights: i32 = panels.iter().map(Panel::height).sum();
    let size = (WIDTH as u32, (heights + AXIS + LEGEND) as u32);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        let mut top = 0;
        for panel in panels {
            draw_panel(&root, panel, top, longest)?;
            top += panel.height();
        }
        draw_axis(&root, top, longest)?;
        draw_legend(&root, top + AXIS)?;
        root.present()?;
    }
    // A picture that scales with the page.
    let (width, height) = size;
    Ok(svg.replacen(
        &format!("<svg width=\"{width}\" height=\"{height}\""),
        "<svg",
        1,
    ))
}

fn draw_panel(root: &Area<'_>, panel: &Panel, top: i32, longest: u64) -> Drawn {
    let title = (FONT, 20).into_font().color(&BLACK);
    root.draw(&Text::new(panel.title.clone(), (LEFT, top + 9), title))?;
    let height = panel.row_height();
    let gap = i32::from(height > 4);
    for (n, row) in panel.rows.iter().enumerate() {
        let y = top + TITLE + n as i32 * height;
        if height >= 12 {
            label(
                root,
                row.label.clone(),
                (LEFT - 8, y + height / 2),
                HPos::Right,
            )?;
        }
        if row.first_of_core && n > 0 && height > 4 {
            let line = [(LEFT - 60, y), (LEFT + PLOT, y)];
            root.draw(&PathElement::new(line, RGBColor(120, 120, 120)))?;
        }
        for (from, to, colour) in pieces(&row.spans, panel.start, longest) {
            let corners = [(LEFT + from, y + gap), (LEFT + to, y + height)];
            root.draw(&Rectangle::new(corners, colour.filled()))?;
        }
    }
    Ok(())
}

fn label(root: &Area<'_>, text: String, at: (i32, i32), side: HPos) -> Drawn {
    let style = (FONT, 16)
        .into_font()
        .color(&BLACK)
        .pos(Pos::new(side, VPos::Center));
    Ok(root.draw(&Text::new(text, at, style))?)
}

/// The spans of a row as runs of pixels of one colour: from, to.
fn pieces(spans: &[Span], start: u64, longest: u64) -> Vec<(i32, i32, RGBColor)> {
    let pixel = |time: u64| {
        let part = u128::from(time.saturating_sub(start)) * PLOT as u128;
        (part / u128::from(longest.max(1))) as usize
    };
    let mut painted = vec![None; PLOT as usize + 2];
    for (kind, (activity, _, _)) in KINDS.iter().enumerate() {
        let rare = matches!(activity, Activity::Window | Activity::Held);
        for span in spans.iter().filter(|span| span.activity == *activity) {
            let from = pixel(span.start);
            let to = pixel(span.end).max(from + if rare { 2 } else { 0 });
            painted[from..to.min(PLOT as usize)].fill(Some(kind));
        }
    }
    let mut runs: Vec<(i32, i32, usize)> = Vec::new();
    for (x, kind) in painted.iter().enumerate() {
        let (x, Some(kind)) = (x as i32, *kind) else {
            continue;
        };
        match runs.last_mut() {
            Some(last) if last.1 == x && last.2 == kind => last.1 = x + 1,
            _ => runs.push((x, x + 1, kind)),
        }
    }
    runs.into_iter()
        .map(|(from, to, kind)| (from, to, KINDS[kind].2))
        .collect()
}

fn draw_axis(root: &Area<'_>, top: i32, longest: u64) -> Drawn {
    let milliseconds = longest as f64 / 1e9;
    let step = nice_step(milliseconds / 8.0);
    let y = top + 2;
    root.draw(&PathElement::new([(LEFT, y), (LEFT + PLOT, y)], BLACK))?;
    let mut at = 0.0;
    while at <= milliseconds {
        let x = LEFT + (at / milliseconds * f64::from(PLOT)) as i32;
        root.draw(&PathElement::new([(x, y), (x, y + 5)], BLACK))?;
        // The last label ends inside the picture.
        let text_x = x.min(WIDTH - 30);
        label(root, format!("{at} ms"), (text_x, y + 15), HPos::Center)?;
        at += step;
    }
    Ok(())
}

/// 1, 2 or 5 times a power of ten, at least this much.
fn nice_step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1e-3).log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let steps = factors.map(|factor| factor * power);
    steps.into_iter().find(|s| *s >= least).unwrap_or(power)
}

fn draw_legend(root: &Area<'_>, top: i32) -> Drawn {
    let mut x = LEFT;
    for (_, name, colour) in KINDS {
        let corners = [(x, top), (x + 16, top + 14)];
        root.draw(&Rectangle::new(corners, colour.filled()))?;
        root.draw(&Rectangle::new(corners, RGBColor(120, 120, 120)))?;
        label(root, name.into(), (x + 22, top + 8), HPos::Left)?;
        x += 48 + 7 * name.len() as i32;
    }
    Ok(())
}
