//! Tables on the terminal, or one JSON document.

use serde_json::{Map, Value, json};
use std::io::IsTerminal;

/// One figure.
#[derive(Clone, Debug)]
pub enum Cell {
    Text(String),
    Count(u64),
    /// Picoseconds; microseconds in JSON.
    Time(u64),
    Ratio(f64),
}

impl Cell {
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Time(time) => match *time as f64 / 1e6 {
                us if us < 1e3 => format!("{us:.1} us"),
                us if us < 1e6 => format!("{:.2} ms", us / 1e3),
                us => format!("{:.2} s", us / 1e6),
            },
            Self::Ratio(ratio) if *ratio < 10.0 => format!("{ratio:.2}"),
            Self::Ratio(ratio) => format!("{ratio:.0}"),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Count(count) => json!(count),
            Self::Time(time) => json!(*time as f64 / 1e6),
            Self::Ratio(ratio) => json!(ratio),
        }
    }
}

struct Table {
    name: &'static str,
    title: &'static str,
    columns: &'static [&'static str],
    rows: Vec<Vec<Cell>>,
}

/// Collects tables and shows them at the end.
pub struct Out {
    json: bool,
    progress: bool,
    tables: Vec<Table>,
}

impl Out {
    pub fn new(json: bool) -> Self {
        Self {
            json,
            progress: std::io::stderr().is_terminal(),
            tables: Vec::new(),
        }
    }

    pub fn table(&mut self, name: &'static str, title: &'static str, columns: &'static [&str]) {
        self.show_last();
        self.tables.push(Table {
            name,
            title,
            columns,
            rows: Vec::new(),
        });
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        if let Some(table) = self.tables.last_mut() {
            assert_eq!(cells.len(), table.columns.len(), "{}", table.name);
            table.rows.push(cells);
            if self.progress {
                eprint!("\r{} {}\x1b[K", table.name, table.rows.len());
            }
        }
    }

    pub fn finish(mut self) {
        self.show_last();
        if self.json {
            let tables = self.tables.iter().map(|table| {
                let rows = table.rows.iter().map(|row| {
                    let columns = table.columns.iter().map(|name| key(name));
                    let cells = columns.zip(row.iter().map(Cell::json));
                    Value::Object(cells.collect::<Map<String, Value>>())
                });
                let rows: Vec<Value> = rows.collect();
                (
                    table.name.to_owned(),
                    json!({"title": table.title, "rows": rows}),
                )
            });
            println!("{}", Value::Object(tables.collect()));
        }
    }

    /// Prints the table that is complete now.
    fn show_last(&mut self) {
        if self.progress {
            eprint!("\r\x1b[K");
        }
        if let (false, Some(table)) = (self.json, self.tables.last()) {
            table.print();
        }
    }
}

/// A column's name without blanks, so that queries need no quotes.
fn key(column: &str) -> String {
    column.replace([' ', '/'], "_").replace('.', "")
}

impl Table {
    fn print(&self) {
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(Cell::shown).collect())
            .collect();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(self.columns[column].len())
        };
        println!("\n{}\n{}", self.name, self.title);
        let header: Vec<String> = self.columns.iter().map(|&name| name.to_owned()).collect();
        for row in std::iter::once(&header).chain(&rows) {
            let cells = row.iter().enumerate().map(|(column, cell)| {
                let left = matches!(
                    self.rows.first().map(|row| &row[column]),
                    Some(Cell::Text(_))
                );
                let width = width(column);
                if left {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
            println!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
    }
}
