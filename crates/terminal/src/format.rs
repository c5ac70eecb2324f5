//! Numbers in a form for people.

/// A number of tokens: `950`, `10.5k`, `1.2M`.
pub fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => scaled(count, 1_000, "k"),
        _ => scaled(count, 1_000_000, "M"),
    }
}

fn scaled(count: u64, unit: u64, name: &str) -> String {
    let tenths = count * 10 / unit;
    match tenths % 10 {
        0 => format!("{}{name}", tenths / 10),
        tenth => format!("{}.{tenth}{name}", tenths / 10),
    }
}

/// A duration: `350ms`, `4s`, `2m 5s`, `1h 3m`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0 => format!("{ms}ms"),
        1..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ => format!("{}h {}m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// A price in dollars, with as many digits as it needs to be different from zero.
pub fn dollars(amount: f64) -> String {
    match amount {
        amount if amount >= 1.0 => format!("${amount:.2}"),
        amount if amount >= 0.01 => format!("${amount:.3}"),
        amount if amount > 0.0 => format!("${amount:.4}"),
        _ => "$0".to_owned(),
    }
}

/// A noun for a count: `row`, `rows`.
pub fn plural(noun: &str, count: usize) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

/// Time since something, in the largest unit: `12s`, `5m`, `3h`, `2d`.
pub fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        let counts: Vec<String> = [0, 999, 1_000, 10_540, 1_250_000].map(tokens).into();
        assert_eq!(counts, ["0", "999", "1k", "10.5k", "1.2M"]);
        let times: Vec<String> = [350, 4_200, 125_000, 3_780_000].map(duration).into();
        assert_eq!(times, ["350ms", "4s", "2m 5s", "1h 3m"]);
        let prices: Vec<String> = [0.0, 0.0004, 0.046, 12.5].map(dollars).into();
        assert_eq!(prices, ["$0", "$0.0004", "$0.046", "$12.50"]);
        assert_eq!([5, 65, 7_300, 200_000].map(ago), ["5s", "1m", "2h", "2d"]);
    }
}
