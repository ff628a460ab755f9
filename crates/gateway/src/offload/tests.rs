mod fuzz;
mod tunnels;

use super::*;

const ETHERNET: usize = 14;

/// A superpacket as a host with TSO or USO sends it, with its `virtio_net_hdr`.
struct Superpacket {
    frame: Vec<u8>,
    header: [u8; 10],
}

fn superpacket(link: &[u8], ipv6: bool, tcp: bool, payload: usize, segment: u16) -> Superpacket {
    let transport_len = if tcp { 32 } else { 8 };
    let protocol = if tcp { 6 } else { 17 };
    let mut ip = if ipv6 {
        let mut ip = vec![0; 40];
        ip[0] = 0x60;
        ip[4..6].copy_from_slice(&((transport_len + payload) as u16).to_be_bytes());
        ip[6] = protocol;
        ip[8..40].copy_from_slice(&[0xab; 32]);
        ip
    } else {
        let mut ip = vec![0; 20];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&((20 + transport_len + payload) as u16).to_be_bytes());
        ip[4..6].copy_from_slice(&[0xff, 0xff]);
        ip[9] = protocol;
        ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        ip
    };
    let mut transport = vec![0; transport_len];
    if tcp {
        transport[4..8].copy_from_slice(&0xffff_ff00u32.to_be_bytes());
        transport[12..14].copy_from_slice(&[0x80, 0x99]);
    }
    let checksum_at = if tcp { 16 } else { 6 };
    let pseudo = pseudo_sum(&ip, (transport_len + payload) as u32);
    transport[checksum_at..checksum_at + 2].copy_from_slice(&pseudo.to_be_bytes());
    let mut frame = link.to_vec();
    frame.append(&mut ip);
    let start = frame.len() as u16;
    frame.append(&mut transport);
    frame.extend((0..payload).map(|i| i as u8));
    let kind = match (tcp, ipv6) {
        (true, false) => GSO_TCPV4 | GSO_ECN,
        (true, true) => GSO_TCPV6 | GSO_ECN,
        (false, _) => GSO_UDP_L4,
    };
    let mut header = [NEEDS_CSUM, kind, 0, 0, 0, 0, 0, 0, 0, 0];
    header[4..6].copy_from_slice(&segment.to_ne_bytes());
    header[6..8].copy_from_slice(&start.to_ne_bytes());
    header[8..10].copy_from_slice(&(checksum_at as u16).to_ne_bytes());
    Superpacket { frame, header }
}

/// Computes the sum word by word, independently of the fast code.
fn slow_sum(bytes: &[u8], start: u32) -> u16 {
    let mut sum = start;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn pseudo_sum(ip: &[u8], len: u32) -> u16 {
    match ip[0] >> 4 {
        4 => slow_sum(&ip[12..20], u32::from(ip[9]) + len),
        _ => slow_sum(&ip[8..40], u32::from(ip[6]) + len),
    }
}

fn undo(packet: &Superpacket) -> Result<Vec<Vec<u8>>, Refused> {
    let mut frames = Vec::new();
    let mut frame = packet.frame.clone();
    Offload::read(&packet.header).undo(&mut frame, &mut Vec::new(), &mut |frame| {
        frames.push(frame.to_vec());
    })?;
    Ok(frames)
}

fn ethernet(kind: u16) -> Vec<u8> {
    let mut link = vec![2; 12];
    link.extend(kind.to_be_bytes());
    link
}

/// Checks lengths and checksums of a frame; returns its transport header and payload.
fn check(frame: &[u8], link: usize) -> &[u8] {
    let ip = &frame[link..];
    let header = match ip[0] >> 4 {
        4 => {
            assert_eq!(slow_sum(&ip[..20], 0), 0xffff, "IP checksum");
            assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), ip.len());
            20
        }
        _ => {
            assert_eq!(
                usize::from(u16::from_be_bytes([ip[4], ip[5]])),
                ip.len() - 40
            );
            40
        }
    };
    let transport = &ip[header..];
    let pseudo = pseudo_sum(ip, transport.len() as u32);
    assert_eq!(
        slow_sum(transport, pseudo.into()),
        0xffff,
        "transport checksum"
    );
    transport
}

#[test]
fn a_tcp_superpacket_becomes_the_segments_that_hardware_would_send() {
    for (ipv6, kind) in [(false, 0x0800), (true, 0x86dd)] {
        let packet = superpacket(&ethernet(kind), ipv6, true, 4000, 1448);
        let frames = undo(&packet).unwrap();
        let segments: Vec<&[u8]> = frames.iter().map(|frame| check(frame, ETHERNET)).collect();
        let lens: Vec<usize> = segments.iter().map(|segment| segment.len() - 32).collect();
        assert_eq!(lens, [1448, 1448, 1104]);
        let payload: Vec<u8> = segments
            .iter()
            .flat_map(|segment| segment[32..].to_vec())
            .collect();
        assert!(payload.iter().enumerate().all(|(i, &byte)| byte == i as u8));
        let sequence = |segment: &[u8]| u32::from_be_bytes(segment[4..8].try_into().unwrap());
        assert_eq!(
            segments
                .iter()
                .map(|segment| sequence(segment))
                .collect::<Vec<_>>(),
            [
                0xffff_ff00,
                0xffff_ff00u32.wrapping_add(1448),
                0xffff_ff00u32.wrapping_add(2896)
            ]
        );
        // CWR only on the first, FIN and PSH only on the last, ACK on all.
        let flags: Vec<u8> = segments.iter().map(|segment| segment[13]).collect();
        assert_eq!(flags, [0x90, 0x10, 0x19]);
        if !ipv6 {
            let ids: Vec<_> = frames.iter().map(|frame| [frame[18], frame[19]]).collect();
            assert_eq!(ids, [[0xff, 0xff], [0, 0], [0, 1]]);
        }
    }
}

#[test]
fn a_udp_superpacket_becomes_datagrams() {
    let packet = superpacket(&ethernet(0x0800), false, false, 2500, 1200);
    let frames = undo(&packet).unwrap();
    let lens: Vec<u16> = frames
        .iter()
        .map(|frame| {
            let udp = check(frame, ETHERNET);
            u16::from_be_bytes([udp[4], udp[5]])
        })
        .collect();
    assert_eq!(lens, [1208, 1208, 108]);
}

#[test]
fn superpackets_in_vlans_and_pppoe_are_split_too() {
    let mut qinq = ethernet(0x88a8);
    qinq.extend([0, 5, 0x81, 0, 0, 7, 0x08, 0x00]);
    for frame in undo(&superpacket(&qinq, false, true, 3000, 1400)).unwrap() {
        check(&frame, qinq.len());
    }
    let mut pppoe = ethernet(0x8864);
    // Version and type, code, session, total length, PPP protocol IPv6.
    pppoe.extend([0x11, 0, 0, 9, 0x7f, 0xff, 0x00, 0x57]);
    for frame in undo(&superpacket(&pppoe, true, true, 3000, 1400)).unwrap() {
        check(&frame, pppoe.len());
        let len = usize::from(u16::from_be_bytes([frame[18], frame[19]]));
        assert_eq!(
            len,
            frame.len() - 20,
            "PPPoE counts from its protocol field"
        );
    }
}

#[test]
fn a_partial_checksum_is_completed() {
    let mut packet = superpacket(&ethernet(0x0800), false, true, 333, 0);
    let ip_sum = !slow_sum(&packet.frame[14..34], 0);
    packet.frame[24..26].copy_from_slice(&ip_sum.to_be_bytes());
    packet.header[1] = GSO_NONE;
    let frames = undo(&packet).unwrap();
    assert_eq!(frames.len(), 1);
    check(&frames[0], ETHERNET);
    assert_eq!(frames[0].len(), packet.frame.len());
}

#[test]
fn marks_that_contradict_the_frame_are_refused_without_panic() {
    let packet = superpacket(&ethernet(0x0800), false, true, 3000, 1400);
    let mut seed = 1u64;
    let mut random = || {
        // Knuth's MMIX random generator.
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    };
    let (mut refused, mut shown) = (0, 0);
    for _ in 0..200_000 {
        let mut header = packet.header;
        let mut frame = packet.frame.clone();
        frame.truncate(random() as usize % (frame.len() + 1));
        for _ in 0..1 + random() % 3 {
            header[random() as usize % 10] = random() as u8;
            if !frame.is_empty() {
                let at = random() as usize % frame.len().min(80);
                frame[at] = random() as u8;
            }
        }
        let mut longest = 0;
        let answer = Offload::read(&header).undo(&mut frame, &mut Vec::new(), &mut |frame| {
            longest = longest.max(frame.len());
        });
        match answer {
            Ok(()) => shown += 1,
            Err(_) => refused += 1,
        }
        assert!(longest <= packet.frame.len());
    }
    assert!(refused > 1000 && shown > 1000, "{refused} {shown}");
}
