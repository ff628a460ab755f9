//! The control socket, from the gateway to the program that parses its settings.

use crate::common::wait::{DEADLINE, wait_for};
use crate::common::{Place, Requests, droptail};
use asymq_gateway::{
    Control, Gateway, GatewayConfig, HostOptions, LinkConfig, Outputs, STANDARD, Stop,
    request_change,
};
use std::sync::{Arc, Mutex};
use std::thread;

#[test]
fn a_request_changes_the_gateway_and_only_accepted_settings_take_effect() {
    let Some(place) = Place::new() else { return };
    let path = std::env::temp_dir().join(format!("asymq-control-{}.sock", std::process::id()));
    let in_force = Arc::<Mutex<Vec<String>>>::default();
    // A request is a rate, or `broken` for a discipline that cannot be built.
    let read = |text: &str| match text {
        "broken" => {
            let mut link = droptail("1mbit");
            if let asymq_gateway::Stage::Queue(config) = &mut link.uplink {
                config.params.remove("buffer-split");
            }
            Ok(link)
        }
        "nonsense" => Err("up nonsense: not a rate".into()),
        rate => Ok(droptail(rate)),
    };
    let accepted = in_force.clone();
    let accept = move |link: &LinkConfig| accepted.lock().unwrap().push(link.up.to_string());
    let control = Control::new(Requests(read, accept), Some(&path), false).unwrap();
    let stop = Stop::new().unwrap();
    let running = thread::spawn({
        let (stop, netns) = (stop.clone(), place.middle.try_clone());
        move || {
            netns.unwrap().enter().unwrap();
            let config = GatewayConfig {
                lan: "lan".into(),
                wan: "wan".into(),
                link: droptail("1mbit"),
            };
            let mut gateway = Gateway::open(STANDARD, &config, &HostOptions::default()).unwrap();
            let outputs = Outputs {
                control: Some(control),
                ..Outputs::default()
            };
            outputs.run(&mut gateway, &stop)
        }
    });
    let ask = |text| request_change(&path, text).map_err(|error| error.to_string());
    // IPv6 packets of the hosts may be queued.
    let changes = |up| ask(up).unwrap().ends_with(" packets moved, 0 dropped");
    assert!(changes("2mbit"));
    assert_eq!(ask("nonsense"), Err("up nonsense: not a rate".into()));
    assert_eq!(
        ask("broken"),
        Err("uplink: buffer-split: missing in the description of droptail".into())
    );
    assert!(changes("3mbit"));
    assert_eq!(*in_force.lock().unwrap(), ["2mbit", "3mbit"]);
    stop.request();
    wait_for("the end of the gateway", DEADLINE, || running.is_finished());
    running.join().unwrap().unwrap();
    assert!(ask("4mbit").unwrap_err().starts_with("--control "));
}
