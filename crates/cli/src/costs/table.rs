//! Costs as text and as CSV.

use hangar_registry::ledger::{Costs, Figures};

/// Columns of the text: title and value.
type Column = (&'static str, fn(&Figures) -> String);

const COLUMNS: [Column; 6] = [
    ("calls", |figures| figures.calls.to_string()),
    ("input", |figures| figures.input_tokens.to_string()),
    ("cached", |figures| figures.cache_read_tokens.to_string()),
    ("output", |figures| figures.output_tokens.to_string()),
    ("cost", cost),
    ("unknown", |figures| figures.unpriced.to_string()),
];

/// The known cost. Unknown is not zero, and a sum without some calls says so.
fn cost(figures: &Figures) -> String {
    match figures.known_cost() {
        None => "unknown".to_owned(),
        Some(cost) if figures.unpriced > 0 => format!(">${cost:.4}"),
        Some(cost) => format!("${cost:.4}"),
    }
}

/// A table with a line for each row, and one for the total.
pub(super) fn text(costs: &Costs) -> Vec<String> {
    if costs.rows.is_empty() {
        return vec!["No model calls are on record.".to_owned()];
    }
    let title = serde_json::to_value(costs.by).ok().and_then(|by| by.as_str().map(str::to_owned));
    let mut rows = vec![row(&title.unwrap_or_default(), |(title, _)| (*title).to_owned())];
    let figures = costs.rows.iter().map(|row| (row.key.as_str(), &row.figures));
    for (key, figures) in figures.chain([("total", &costs.total)]) {
        // Names of projects and models come from anywhere; a terminal obeys none.
        rows.push(row(&hangar_terminal::gate::visible(key), |(_, value)| value(figures)));
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..=COLUMNS.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let mut cells = row.iter().zip(&widths);
        let first = cells.next().map(|(cell, width)| format!("{cell:<width$}")).unwrap_or_default();
        cells.fold(first, |line, (cell, width)| format!("{line}  {cell:>width$}"))
    };
    rows.iter().map(line).collect()
}

fn row(key: &str, value: impl Fn(&Column) -> String) -> Vec<String> {
    [key.to_owned()].into_iter().chain(COLUMNS.iter().map(value)).collect()
}

/// CSV with a header. An unknown cost is an empty cell.
pub(super) fn csv(costs: &Costs) -> Vec<String> {
    let header = "key,calls,inputTokens,outputTokens,cacheReadTokens,cacheWriteTokens,reasoningTokens,costUsd,computedUsd,unpricedCalls";
    let rows = costs.rows.iter().map(|row| {
        let figures = &row.figures;
        let cost = figures.known_cost().map(|cost| cost.to_string()).unwrap_or_default();
        format!(
            "{},{},{},{},{},{},{},{cost},{},{}",
            quoted(&row.key),
            figures.calls,
            figures.input_tokens,
            figures.output_tokens,
            figures.cache_read_tokens,
            figures.cache_write_tokens,
            figures.reasoning_tokens,
            figures.computed,
            figures.unpriced,
        )
    });
    [header.to_owned()].into_iter().chain(rows).collect()
}

/// A text as a cell. A spreadsheet takes one that begins with a sign for a formula, so such a one is made text.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_are_no_formulas() {
        for (text, expected) in
            [("a", "a"), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\""), ("=1+1", "'=1+1"), ("-x,", "\"'-x,\"")]
        {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn an_unknown_cost_is_said_to_be_unknown() {
        let figures = |cost: f64, unpriced: u64| Figures { cost, unpriced, ..Figures::default() };
        assert_eq!(cost(&figures(0.0, 1)), "unknown");
        assert_eq!(cost(&figures(0.5, 1)), ">$0.5000");
        assert_eq!(cost(&figures(0.0, 0)), "$0.0000");
    }
}
