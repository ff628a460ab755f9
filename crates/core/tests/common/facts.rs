//! Properties of every parsed frame, for any bytes.

use asymq_core::decide::frame::Parsed;
use asymq_core::packet::Protocol;

/// Panics if the parsed properties contradict each other or the frame's length.
pub(crate) fn check(parsed: &Parsed, frame: &[u8]) {
    let header = &parsed.header;
    let (network, transport) = (usize::from(parsed.network), usize::from(parsed.transport));
    let end = network + header.ip_len as usize;
    assert_eq!(header.len as usize, frame.len());
    assert!(end <= frame.len());
    if header.protocol == Protocol::Tcp {
        assert!(network < transport && transport + 20 <= end);
        assert!(header.payload as usize <= end - transport - 20);
    } else {
        assert!(header.protocol == Protocol::Opaque || header.ip_len > 0);
        assert_eq!(
            (transport, header.payload, header.flags, header.ack),
            (0, 0, 0, 0)
        );
    }
}
