//! The same frames leave the gateway's queues in the order and with the verdicts of any other holder of packets.
//! The simulator has this test, too, and the kernel's module makes it when its test build is loaded.

use asymq_core::ack::AckInfo;
use asymq_core::catalog::{Catalog as _, Role, Standard};
use asymq_core::frame::Parsed;
use asymq_core::{Header, Network, Packet};
use asymq_gateway::Frame;
use asymq_laws::frames::{Arrival, Held, arrivals, number, same_verdicts};
use asymq_laws::{capture, golden};

struct Gateways(Frame);

impl Packet for Gateways {
    fn header(&self) -> &Header {
        self.0.header()
    }

    fn ack_info(&self) -> Option<AckInfo> {
        self.0.ack_info()
    }

    fn network(&self) -> Network {
        self.0.network()
    }

    fn mark_ce(&mut self) -> bool {
        self.0.mark_ce()
    }
}

impl Held for Gateways {
    fn hold(arrival: &Arrival, parsed: &Parsed) -> Self {
        let bytes = arrival.bytes.clone().into_boxed_slice();
        Self(Frame::new(arrival.at, parsed, parsed.header.len, bytes))
    }

    fn number(&self) -> u16 {
        number(&self.0.bytes)
    }

    fn frame(&self) -> Option<Vec<u8>> {
        Some(self.0.bytes.to_vec())
    }
}

fn treated_as_any_others(arrivals: &[Arrival]) {
    for entry in Standard.of_role(Role::Qdisc) {
        let config = golden::config(&Standard, entry.name).unwrap();
        let same = same_verdicts::<Gateways>(&Standard, &config, arrivals);
        assert_eq!(same, Ok(()), "{}", entry.name);
    }
}

#[test]
fn every_discipline_treats_the_gateways_frames_as_any_others() {
    treated_as_any_others(&arrivals());
}

#[test]
fn a_capture_of_real_tcp_leaves_the_gateway_with_the_same_bytes_as_any_other_holder() {
    treated_as_any_others(&capture::arrivals(capture::HOME).unwrap());
}
