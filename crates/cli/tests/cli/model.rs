//! `asymq model`, run as a user runs it.

use crate::answer;
use serde_json::Value;

fn model(arguments: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let json = answer(directory.path(), &format!("model --json {arguments}"));
    serde_json::from_str(&json).unwrap()
}

fn near(value: &Value, expected: f64, tolerance: f64) {
    let number = value.as_f64().unwrap();
    assert!(
        (number - expected).abs() <= tolerance,
        "{number} is not {expected}"
    );
}

#[test]
fn the_papers_link_has_the_papers_ratio_and_split() {
    let answer = model("--up 1mbit --down 10mbit");
    assert_eq!(answer["fillable"], true);
    // Eq. 7 with r_c = 0.1 and r_s = 40/1500; Fig. 7 shows 73 % and 27 %.
    let (rc, rs) = (0.1, 40.0 / 1500.0);
    near(
        &answer["full"]["ratio"],
        (rc - rs) / ((1.0 - rc * rs) * rs),
        1e-9,
    );
    near(&answer["full"]["data_share"], 0.73, 0.005);
    assert_eq!(answer["full"]["buffer"]["data"], "37p");
    assert_eq!(answer["full"]["buffer"]["ack"], "13p");
    // 50 packets of 1500 bytes at 1 Mbit/s (eq. 12).
    near(&answer["droptail_delay_ms"], 600.0, 1e-9);
}

#[test]
fn beyond_equation_11_the_model_gives_the_reason_and_the_minimum_uplink() {
    let answer = model("--up 256kbit");
    assert_eq!(answer["fillable"], false);
    assert!(answer.get("full").is_none());
    near(&answer["least_up"], 10e6 * 40.0 / 1500.0, 1e-3);
    near(
        &answer["normalized_asymmetry"],
        10e6 / 256e3 * 40.0 / 1500.0,
        1e-9,
    );
}

#[test]
fn other_traffic_leaves_its_rest_to_tcp() {
    // Eq. 10 with 500 kbit/s of UDP up: r_c = 0.05.
    let answer = model("--non-tcp-up 500kbit");
    let (rc, rs) = (0.05, 40.0 / 1500.0);
    near(
        &answer["full"]["ratio"],
        (rc - rs) / ((1.0 - rc * rs) * rs),
        1e-9,
    );
    assert_eq!(model("--non-tcp-up 2mbit")["fillable"], false);
}
