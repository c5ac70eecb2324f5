//! Delays before retries.

use std::time::Duration;

use hangar_orchestrator::timing::backoff;

#[test]
fn delays_double_from_ten_seconds() {
    let longest = Duration::from_secs(300);
    for (failures, seconds) in [(1, 10), (2, 20), (5, 160), (6, 300), (u32::MAX, 300)] {
        assert_eq!(backoff(failures, longest), Duration::from_secs(seconds), "{failures}");
    }
}
