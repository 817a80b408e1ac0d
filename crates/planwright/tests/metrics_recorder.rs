//! The recorder of metrics does not grow with what is recorded.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::time::Duration;

use planwright::metrics_recorder::{builder, keep_up};

/// What this process holds in memory, in kilobytes.
fn resident_kb() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A million requests. Kept one by one they take 16 bytes each, some 14 MB after the first hundred thousand.
#[tokio::test]
async fn a_million_requests_take_no_more_memory_than_the_first_hundred_thousand() {
    let recorder = builder().unwrap().build_recorder();
    let handle = recorder.handle();
    let keeping = tokio::spawn(keep_up(handle.clone(), Duration::from_millis(5)));
    let mut line = Vec::new();
    for _ in 0..10 {
        for _ in 0..10 {
            metrics::with_local_recorder(&recorder, || {
                for number in 0..10_000 {
                    let seconds = f64::from(number) / 10_000.0;
                    metrics::histogram!("http.requests.seconds").record(seconds);
                }
            });
            tokio::time::sleep(Duration::from_millis(6)).await;
        }
        line.push(resident_kb());
    }
    keeping.abort();
    println!("resident after each hundred thousand, in kB: {line:?}");
    let text = handle.render();
    assert!(text.contains("http_requests_seconds_count 1000000"), "{text}");
    assert!(text.contains("http_requests_seconds_bucket{le=\"0.25\"}"), "{text}");
    assert!(line[9] - line[0] < 4_000, "{line:?}");
}
