//! Echo requests to a configured host. They measure delays while the forwarded packets yield no delay samples.
//!
//! The gateway has no address. The source address of a request is therefore the address of the home host that sent
//! last. The answer is not forwarded.

use asymq_core::decide::frame::checksum::checksum;
use std::net::Ipv4Addr;

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const ICMP: u8 = 1;
const IP_HEADER: usize = 20;
const ICMP_HEADER: usize = 8;
/// Maximum length of the link header: Ethernet with two VLAN tags.
const MAX_LINK: usize = 22;
/// Minimum length of an Ethernet frame.
const SHORTEST: usize = 60;

#[derive(Debug, Default)]
pub(crate) struct RateProbe {
    ident: u16,
    number: u16,
    /// Link header of a home host's frame.
    link: Vec<u8>,
    source: Option<Ipv4Addr>,
}

impl RateProbe {
    pub(crate) fn new(ident: u16) -> Self {
        Self {
            ident,
            ..Self::default()
        }
    }

    /// Stores the link header and the address of a home host from its frame. The IP header begins at `network`.
    pub(crate) fn learn(&mut self, frame: &[u8], network: u16) {
        const IPV4: [u8; 2] = [8, 0];
        if let Some((link, packet)) = frame.split_at_checked(network.into())
            && link.len() <= MAX_LINK
            && link.ends_with(&IPV4)
            && packet.first() == Some(&0x45)
            && let Some(&[a, b, c, d]) = packet.get(12..16).and_then(|it| it.first_chunk())
        {
            self.link.clear();
            self.link.extend_from_slice(link);
            self.source = Some(Ipv4Addr::new(a, b, c, d));
        }
    }

    /// Returns number and frame of the next request to `host`; `None` until a home host has sent.
    pub(crate) fn request(&mut self, host: Ipv4Addr) -> Option<(u16, Vec<u8>)> {
        let source = self.source?;
        self.number = self.number.wrapping_add(1);
        let mut ip = [0; IP_HEADER];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&((IP_HEADER + ICMP_HEADER) as u16).to_be_bytes());
        ip[8] = 64;
        ip[9] = ICMP;
        ip[12..16].copy_from_slice(&source.octets());
        ip[16..20].copy_from_slice(&host.octets());
        let sum = checksum(0, &ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        let mut icmp = [0; ICMP_HEADER];
        icmp[0] = ECHO_REQUEST;
        icmp[4..6].copy_from_slice(&self.ident.to_be_bytes());
        icmp[6..8].copy_from_slice(&self.number.to_be_bytes());
        let sum = checksum(0, &icmp);
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut frame = [&self.link[..], &ip, &icmp].concat();
        frame.resize(frame.len().max(SHORTEST), 0);
        Some((self.number, frame))
    }

    /// Returns the number of the request that a frame from `host` answers. The frame's IP header begins at `network`.
    pub(crate) fn answered(&self, host: Ipv4Addr, frame: &[u8], network: u16) -> Option<u16> {
        let packet = frame.get(network.into()..)?;
        let header = packet.first_chunk::<IP_HEADER>()?;
        let icmp = packet.get(IP_HEADER..)?.first_chunk::<ICMP_HEADER>()?;
        let is_reply = header[0] == 0x45
            && header[9] == ICMP
            && header[12..16] == host.octets()
            && icmp[0] == ECHO_REPLY
            && icmp[4..6] == self.ident.to_be_bytes();
        is_reply.then(|| u16::from_be_bytes([icmp[6], icmp[7]]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    /// A frame of a host at home, with a VLAN tag.
    fn of_home() -> Vec<u8> {
        let mut frame = vec![7; 12];
        frame.extend([0x81, 0, 0, 5, 8, 0]);
        frame.extend([0x45; 1]);
        frame.extend([0; 19]);
        frame[18 + 12..18 + 16].copy_from_slice(&[10, 0, 0, 9]);
        frame
    }

    #[test]
    fn a_request_is_a_right_echo_of_the_home_host_and_its_answer_is_known() {
        let mut probe = RateProbe::new(0x1234);
        assert!(probe.request(HOST).is_none(), "no home host has sent");
        probe.learn(&of_home(), 18);
        let (number, frame) = probe.request(HOST).unwrap();
        assert_eq!((frame.len(), &frame[..18]), (60, &of_home()[..18]));
        assert_eq!(frame[30..34], [10, 0, 0, 9]);
        assert_eq!(checksum(0, &frame[18..38]), 0);
        assert_eq!(checksum(0, &frame[38..46]), 0);
        let mut answer = frame.clone();
        answer[30..34].copy_from_slice(&HOST.octets());
        answer[38] = 0;
        assert_eq!(probe.answered(HOST, &answer, 18), Some(number));
        let other = Ipv4Addr::new(192, 0, 2, 2);
        assert_eq!(probe.answered(other, &answer, 18), None);
        answer[42] ^= 1;
        assert_eq!(
            probe.answered(HOST, &answer, 18),
            None,
            "of somebody else's"
        );
        for len in 0..46 {
            assert_eq!(probe.answered(HOST, &frame[..len], 18), None);
        }
    }

    #[test]
    fn only_plain_ipv4_teaches_an_address() {
        let mut probe = RateProbe::new(1);
        let mut pppoe = of_home();
        pppoe[16..18].copy_from_slice(&[0x00, 0x21]);
        probe.learn(&pppoe, 18);
        probe.learn(&of_home()[..20], 18);
        probe.learn(&of_home(), 30);
        probe.learn(&[], 18);
        assert!(probe.request(HOST).is_none());
    }
}
