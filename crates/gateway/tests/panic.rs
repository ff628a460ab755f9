//! If a discipline of another crate panics, every thread that waits for the gateway returns.

use crate::common::Requests;
use crate::common::disciplines::discipline;
use crate::common::wait::{DEADLINE, wait_for};
use crate::common::wire::{numbered, send};
use crate::common::{Place, Running, droptail};
use crate::panicking::Panicking;
use asymq_core::units::Duration;
use asymq_gateway::{
    ChangeError, Control, Gateway, GatewayConfig, HostOptions, LinkConfig, Outputs, Stage, Stop,
};
use std::thread;

fn config() -> GatewayConfig {
    let link = droptail("1mbit");
    let red = discipline("red", link.up, link.up, 50);
    GatewayConfig {
        lan: "lan".into(),
        wan: "wan".into(),
        link: LinkConfig {
            uplink: Stage::Queue(red),
            ..link
        },
    }
}

#[test]
fn whoever_waits_for_a_gateway_that_panics_is_told_that_it_has_stopped() {
    let Some(place) = Place::new() else { return };
    let gateway = Running::with_catalog(&place, &Panicking, config());
    let stats = gateway.stats.clone();
    let reader = thread::spawn(move || {
        let mut seen = 0;
        while stats.next(&mut seen).is_some() {}
    });
    send(&place.home, &[numbered(1, 100)]);
    wait_for("the end of the reader", DEADLINE, || reader.is_finished());
    let late = gateway.changer.change(&droptail("2mbit"));
    assert_eq!(late, Err(ChangeError::Stopped));
    assert!(gateway.thread.join().is_err(), "the panic is passed on");
}

#[test]
fn helpers_end_when_a_gateway_panics() {
    let Some(place) = Place::new() else { return };
    let netns = place.middle.try_clone().unwrap();
    let path = std::env::temp_dir().join(format!("asymq-panic-{}.sock", std::process::id()));
    let settings = Requests(|_: &str| Ok(droptail("2mbit")), |_: &LinkConfig| ());
    let control = Control::new(settings, Some(&path), false).unwrap();
    let running = thread::spawn(move || {
        netns.enter().unwrap();
        let mut gateway = Gateway::open(&Panicking, &config(), &HostOptions::default()).unwrap();
        gateway.set_report_interval(Duration::from_millis(20));
        let outputs = Outputs {
            control: Some(control),
            ..Outputs::default()
        };
        outputs.run(&mut gateway, &Stop::new().unwrap())
    });
    // Waits, since frames may arrive before the gateway has opened its interfaces.
    wait_for("the end of the gateway", DEADLINE, || {
        send(&place.home, &[numbered(1, 100)]);
        running.is_finished()
    });
    assert!(running.join().is_err(), "the panic is passed on");
    assert!(!path.exists(), "the control socket goes with it");
}
