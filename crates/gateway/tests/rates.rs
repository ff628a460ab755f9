//! Rates learnt from real TCP in front of a second gateway, which emulates a modem with a varying rate.

use crate::common::disciplines::discipline;
use crate::common::{NET, Place, Running, droptail, transfer_to};
use asymq_core::units::Duration;
use asymq_core::units::RateRange;
use asymq_gateway::{GatewayConfig, LinkConfig, Snapshot, Stage};
use std::thread;

/// A line of this rate, whose buffer holds one second at 8 Mbit/s.
fn modem(up: &str) -> LinkConfig {
    let (rate, down) = (up.parse().unwrap(), "1gbit".parse().unwrap());
    LinkConfig {
        uplink: Stage::Queue(discipline("droptail", rate, down, 660)),
        ..droptail(up)
    }
}

#[test]
fn a_gateway_learns_the_rate_of_the_modem_behind_it_and_keeps_its_queue_short() {
    // If a busy machine pauses, a queue builds up. One undisturbed attempt is enough.
    const ATTEMPTS: usize = 4;
    for attempt in 1..=ATTEMPTS {
        let Some(place) = Place::new() else { return };
        match learn(&place) {
            Ok(()) => return,
            Err(wrong) => eprintln!("attempt {attempt}: {wrong}"),
        }
    }
    panic!("{ATTEMPTS} attempts failed");
}

/// Makes a gateway learn the rates of a line of 8 and then 4 Mbit/s. An error contains the values found.
fn learn(place: &Place) -> Result<(), String> {
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
        rate_probe: None,
        uplink: Stage::Queue(discipline("asymq", up, "1gbit".parse().unwrap(), 400)),
        ..modem("50mbit")
    };
    let home = Running::with(place, config("lan", "near", learning));
    let line = Running::with(place, config("far", "wan", modem("8mbit")));
    let rate = |now: &Snapshot| now.up.learnt_rate().map_or(0.0, |rate| rate / 1e6);
    let seen = thread::scope(|scope| {
        // A single upload's window may be too small for a queue above the noise, and then no rate is learnt.
        let uploads = [5000, 5001, 5002].map(|port| {
            scope.spawn(move || transfer_to(&place.home, &place.net, (NET, port), 3_000_000))
        });
        // Medians of two seconds: learnt rate in Mbit/s, and bytes waiting in the modem.
        let observe = || {
            let samples = (0..40).map(|_| {
                thread::sleep(Duration::from_millis(50).into());
                let waits = line.stats.latest().up.data.backlog_bytes;
                (rate(&home.stats.latest()), waits)
            });
            let (mut rates, mut waits): (Vec<f64>, Vec<u64>) = samples.unzip();
            rates.sort_by(f64::total_cmp);
            waits.sort_unstable();
            (rates[20], waits[20])
        };
        home.wait_for("the first queue", |now| rate(now) < 12.0);
        let now = home.stats.latest();
        assert_eq!(now.up.capacity as f64, (rate(&now) * 1e6).round());
        thread::sleep(Duration::from_millis(500).into());
        let first = observe();
        line.changer.change(&modem("4mbit")).unwrap();
        thread::sleep(Duration::from_secs(1).into());
        let second = observe();
        // The rest of the uploads need not wait for the slow line.
        for running in [&home, &line] {
            running.changer.change(&modem("50mbit")).unwrap();
        }
        for upload in uploads {
            assert_eq!(upload.join().unwrap(), 3_000_000);
        }
        [first, second]
    });
    home.stop();
    line.stop();
    let [first, second] = seen;
    let right = (6.0..10.0).contains(&first.0) && (2.5..5.5).contains(&second.0);
    // 50 ms at 8 Mbit/s. Without a learnt rate, one second of data waits in the modem.
    let short = first.1 < 50_000 && second.1 < 50_000;
    (right && short)
        .then_some(())
        .ok_or(format!("Mbit/s and bytes in the modem: {seen:?}"))
}
