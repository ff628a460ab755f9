//! A port that stores the frames passed to it for sending.

use asymq_gateway::PacketIo;
use std::io;

#[derive(Default)]
pub(crate) struct FakePort(pub(crate) Vec<Vec<u8>>);

impl PacketIo for FakePort {
    fn receive(&mut self, _: usize, _: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        Ok(0)
    }

    fn send(&mut self, frame: &[u8]) {
        self.0.push(frame.to_vec());
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
