//! The figures as a Markdown table.

use std::fmt;

#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Milliseconds,
    Microseconds,
    Kilobytes,
    Megabytes,
    /// Things that are counted.
    Pieces,
    Percent,
    /// Things that are counted by the tenth.
    Tenths,
}

/// What the first contender should reach.
#[derive(Clone, Copy)]
pub(crate) enum Bar {
    Below(f64),
    AtLeast(f64),
    /// At most this share of the best figure of the others.
    ShareOfBestPeer(f64),
}

struct Row {
    what: &'static str,
    unit: Unit,
    /// One per contender.
    figures: Vec<Option<f64>>,
    bar: Option<Bar>,
}

pub(crate) struct Table {
    contenders: Vec<&'static str>,
    rows: Vec<Row>,
}

impl Table {
    /// The first contender is the one that bars are for.
    pub(crate) fn new(contenders: Vec<&'static str>) -> Self {
        Self { contenders, rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, what: &'static str, unit: Unit, contender: &str, figure: f64) {
        let column = self.contenders.iter().position(|name| *name == contender);
        let count = self.contenders.len();
        let row = match self.rows.iter().position(|row| row.what == what) {
            Some(row) => &mut self.rows[row],
            None => {
                self.rows.push(Row { what, unit, figures: vec![None; count], bar: None });
                let last = self.rows.len() - 1;
                &mut self.rows[last]
            }
        };
        if let Some(column) = column {
            row.figures[column] = Some(figure);
        }
    }

    pub(crate) fn set_bars(&mut self, bars: &[(&str, Bar)]) {
        for row in &mut self.rows {
            row.bar = bars.iter().find(|(what, _)| *what == row.what).map(|(_, bar)| *bar);
        }
    }
}

impl Row {
    /// The best figure of the others. One that is nought was not measured.
    fn best_peer(&self) -> Option<f64> {
        let measured = self.figures.iter().skip(1).flatten().copied().filter(|figure| *figure > 0.0);
        measured.min_by(f64::total_cmp)
    }

    fn ours(&self) -> Option<f64> {
        self.figures.first().copied().flatten()
    }

    fn verdict(&self) -> String {
        let (Some(bar), Some(ours)) = (self.bar, self.ours()) else { return String::new() };
        let (met, text) = match bar {
            Bar::Below(limit) => {
                let sign = if limit == 0.0 { "=" } else { "<" };
                (ours <= limit, format!("{sign} {}", self.unit.show(limit)))
            }
            Bar::AtLeast(limit) => (ours >= limit, format!("≥ {}", self.unit.show(limit))),
            Bar::ShareOfBestPeer(share) => match self.best_peer().map(|best| best * share) {
                Some(limit) => (ours <= limit, format!("≤ {} (best × {share})", self.unit.show(limit))),
                None => return "no peer to compare with".to_owned(),
            },
        };
        format!("{text}: {}", if met { "pass" } else { "**miss**" })
    }
}

impl Unit {
    fn show(self, figure: f64) -> String {
        let unit = match self {
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "µs",
            Unit::Kilobytes => "KB",
            Unit::Megabytes => "MB",
            Unit::Pieces => return format!("{figure:.0}"),
            Unit::Tenths => return format!("{figure:.1}"),
            Unit::Percent => return format!("{figure:.0} %"),
        };
        if figure >= 100.0 { format!("{figure:.0} {unit}") } else { format!("{figure:.1} {unit}") }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| | {} | best peer ÷ hangar | bar |", self.contenders.join(" | "))?;
        writeln!(f, "|---|{}", "---|".repeat(self.contenders.len() + 2))?;
        for row in &self.rows {
            let show = |figure: &Option<f64>| figure.map_or("–".to_owned(), |figure| row.unit.show(figure));
            let figures: Vec<String> = row.figures.iter().map(show).collect();
            let ratio = match (row.best_peer(), row.ours()) {
                (Some(best), Some(ours)) if ours > 0.0 => format!("{:.1}×", best / ours),
                _ => "–".to_owned(),
            };
            writeln!(f, "| {} | {} | {ratio} | {} |", row.what, figures.join(" | "), row.verdict())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_judged_against_limits_and_against_the_best_peer() {
        let mut table = Table::new(vec!["hangar", "a", "b"]);
        for (contender, figure) in [("hangar", 30.0), ("a", 400.0), ("b", 1000.0)] {
            table.add("cpu", Unit::Milliseconds, contender, figure);
        }
        table.add("size", Unit::Megabytes, "hangar", 31.0);
        table.add("rate", Unit::Pieces, "hangar", 1000.0);
        table.set_bars(&[
            ("cpu", Bar::ShareOfBestPeer(0.1)),
            ("size", Bar::Below(30.0)),
            ("rate", Bar::AtLeast(1000.0)),
        ]);
        let expected = "\
| | hangar | a | b | best peer ÷ hangar | bar |
|---|---|---|---|---|---|
| cpu | 30.0 ms | 400 ms | 1000 ms | 13.3× | ≤ 40.0 ms (best × 0.1): pass |
| size | 31.0 MB | – | – | – | < 30.0 MB: **miss** |
| rate | 1000 | – | – | – | ≥ 1000: pass |
";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn nobody_beats_a_peer_that_was_not_measured() {
        let mut table = Table::new(vec!["hangar", "a"]);
        table.add("tokens", Unit::Pieces, "hangar", 0.0);
        table.add("tokens", Unit::Pieces, "a", 0.0);
        table.set_bars(&[("tokens", Bar::ShareOfBestPeer(1.0))]);
        assert!(table.to_string().contains("no peer to compare with"), "{table}");
    }
}
