//! Rates learnt from real TCP before a second gateway, which stands for a modem whose rate changes.

mod common;

use asymq_core::control::rate::RateRange;
use asymq_core::units::Duration;
use asymq_gateway::{GatewayConfig, LinkConfig, Snapshot, Stage};
use common::disciplines::discipline;
use common::{NET, Place, Running, droptail, transfer};
use std::thread;

/// A line of this rate, with a second of buffer at 8 Mbit/s.
fn modem(up: &str) -> LinkConfig {
    let (rate, down) = (up.parse().unwrap(), "1gbit".parse().unwrap());
    LinkConfig {
        uplink: Stage::Queue(discipline("droptail", rate, down, 660)),
        ..droptail(up)
    }
}

#[test]
fn a_gateway_learns_the_rate_of_the_modem_behind_it_and_keeps_its_queue_short() {
    let Some(place) = Place::new() else { return };
    place.add_line();
    let config = |lan: &str, wan: &str, link| GatewayConfig {
        lan: lan.into(),
        wan: wan.into(),
        link,
    };
    let up = "50mbit".parse().unwrap();
    let learning = LinkConfig {
        up,
        auto: [Some(RateRange::ANY), None],
        uplink: Stage::Queue(discipline("asymq", up, "1gbit".parse().unwrap(), 400)),
        ..modem("50mbit")
    };
    let home = Running::with(&place, config("lan", "near", learning));
    let line = Running::with(&place, config("far", "wan", modem("8mbit")));
    let rate = |now: &Snapshot| {
        now.up
            .control
            .get("auto_rate")
            .map_or(0.0, |rate| rate / 1e6)
    };
    thread::scope(|scope| {
        let upload = scope.spawn(|| transfer(&place.home, &place.net, NET, 12_000_000));
        home.wait_for("8 Mbit/s", |now| (6.0..9.5).contains(&rate(now)));
        thread::sleep(Duration::from_millis(500).into());
        let (mut rates, mut backlogs) = (Vec::new(), Vec::new());
        for _ in 0..40 {
            thread::sleep(Duration::from_millis(50).into());
            rates.push(rate(&home.stats.latest()));
            backlogs.push(line.stats.latest().up.data.backlog_bytes);
        }
        line.changer.change(&modem("4mbit")).unwrap();
        home.wait_for("4 Mbit/s", |now| (2.4..5.0).contains(&rate(now)));
        // A rate above the line's is harmless while the sender's window, and no queue, is the limit.
        rates.sort_by(f64::total_cmp);
        assert!((6.0..12.0).contains(&rates[20]), "{rates:?} Mbit/s");
        // 50 ms at 8 Mbit/s.
        backlogs.sort_unstable();
        assert!(backlogs[20] < 50_000, "{backlogs:?}");
        assert_eq!(upload.join().unwrap(), 12_000_000);
    });
    home.stop();
    line.stop();
}
