//! Sends frames by AF_XDP in copy mode.
//!
//! Copy mode needs no program at the interface and no support by the driver. The kernel copies frames from shared
//! memory, many per call, without parsing them.

use super::memory::Memory;
use super::socket::{address, get_option, set_option};
use crate::io::Losses;
use socket2::{Domain, Socket, Type};
use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Number of chunks of shared memory. They hold more than the buffer of an AF_PACKET socket.
const CHUNKS: u32 = 256;
/// Maximum number of frames that the kernel has not accepted yet.
const BATCH: u32 = 64;
/// Number of attempts to bind, and the pause between them. The kernel frees a closed socket's queue with a delay.
const BUSY: (u32, Duration) = (100, Duration::from_millis(1));

/// Sends frames through the first transmit queue of an interface, without blocking.
#[derive(Debug)]
pub(crate) struct XdpSender {
    socket: Socket,
    chunks: Memory,
    chunk_size: usize,
    /// Addresses of chunks that the kernel does not use now.
    free: Vec<u64>,
    descriptors: Ring,
    completions: Ring,
    written: u32,
    /// Number of entries read from the ring of completions.
    completed: u32,
}

impl XdpSender {
    /// Creates a sender for frames of at most `frame` bytes; the maximum is a page.
    ///
    /// # Errors
    /// The kernel's AF_XDP is missing or too old, or another program uses it. Memory cannot be locked (`ENOBUFS`), or
    /// a privilege is missing.
    pub(crate) fn new(ifindex: u32, frame: usize) -> io::Result<Self> {
        let chunk_size = if frame <= 2048 { 2048 } else { 4096 };
        if frame > chunk_size {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let socket = Socket::new(Domain::from(libc::AF_XDP), Type::RAW, None)?;
        let size = CHUNKS as usize * chunk_size;
        let chunks = Memory::map(None, 0, size)?;
        let set = |option, value: u32| set_option(&socket, libc::SOL_XDP, option, &value);
        let memory = libc::xdp_umem_reg {
            addr: chunks.at(0, size).expose_provenance() as u64,
            len: size as u64,
            chunk_size: chunk_size as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set_option(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &memory)?;
        // The kernel requires this ring, although the socket receives nothing.
        set(libc::XDP_UMEM_FILL_RING, 1)?;
        set(libc::XDP_UMEM_COMPLETION_RING, CHUNKS)?;
        set(libc::XDP_TX_RING, CHUNKS)?;
        // Linux before 5.4 returns fewer fields.
        let offsets: libc::xdp_mmap_offsets =
            get_option(&socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let tx = (libc::XDP_PGOFF_TX_RING as u64, &offsets.tx);
        let completion = (libc::XDP_UMEM_PGOFF_COMPLETION_RING, &offsets.cr);
        let descriptors = Ring::map::<libc::xdp_desc>(&socket, tx, CHUNKS)?;
        let completions = Ring::map::<u64>(&socket, completion, CHUNKS)?;
        bind(&socket, ifindex)?;
        Ok(Self {
            socket,
            chunks,
            chunk_size,
            free: (0..u64::from(CHUNKS))
                .map(|n| n * chunk_size as u64)
                .collect(),
            descriptors,
            completions,
            written: 0,
            completed: 0,
        })
    }

    pub(crate) const fn longest(&self) -> usize {
        self.chunk_size
    }

    /// True if frames are queued for [`send`](Self::send).
    pub(crate) fn is_waiting(&self) -> bool {
        self.taken() != self.written
    }

    /// Queues a copy of the frame; returns false if the batch or the memory is full.
    pub(crate) fn push(&mut self, frame: &[u8]) -> bool {
        if self.written.wrapping_sub(self.taken()) >= BATCH {
            return false;
        }
        let Some(chunk) = self.free.pop() else {
            return false;
        };
        let to = self.chunks.at(chunk as usize, frame.len());
        // SAFETY: a free chunk, which the kernel does not access.
        unsafe { to.copy_from_nonoverlapping(frame.as_ptr(), frame.len()) };
        let descriptor = libc::xdp_desc {
            addr: chunk,
            len: frame.len() as u32,
            options: 0,
        };
        // SAFETY: the entries are descriptors, and the kernel reads none now.
        unsafe {
            self.descriptors
                .entry::<libc::xdp_desc>(self.written)
                .write(descriptor)
        };
        self.written = self.written.wrapping_add(1);
        true
    }

    /// Sends frames while the driver has room, and counts those that the driver drops.
    pub(crate) fn send(&mut self, losses: &mut Losses) -> io::Result<()> {
        let producer = self.descriptors.producer();
        producer.store(self.written, Ordering::Release);
        let mut answer = Ok(());
        // Number of dropped frames that the kernel's counter does not include yet.
        let mut dropped = 0;
        while self.is_waiting() {
            let before = self.taken();
            let sent = self.socket.send_with_flags(&[], libc::MSG_DONTWAIT);
            let error = sent.err().map(|error| (error.raw_os_error(), error));
            let progress = self.taken() != before;
            if progress {
                dropped = 0;
            }
            match error {
                Some((Some(libc::EINTR), _)) => {}
                Some((Some(libc::EBUSY), _)) => {
                    losses.not_sent += 1;
                    dropped += u32::from(!progress);
                }
                // The driver has no room, or the call reached its limit.
                None | Some((Some(libc::EAGAIN | libc::ENOBUFS), _)) if progress => {}
                None | Some((Some(libc::EAGAIN | libc::ENOBUFS), _)) => break,
                Some((_, error)) => {
                    let rest = self.written.wrapping_sub(self.taken());
                    losses.not_sent += u64::from(rest.saturating_sub(dropped));
                    answer = Err(error);
                    break;
                }
            }
        }
        self.complete();
        answer
    }

    /// Number of descriptors that the kernel has processed.
    fn taken(&self) -> u32 {
        self.descriptors.consumer().load(Ordering::Acquire)
    }

    fn complete(&mut self) {
        let ready = self.completions.producer().load(Ordering::Acquire);
        while self.completed != ready {
            // SAFETY: the entries are addresses, and the kernel has written those up to its counter.
            let chunk = unsafe { self.completions.entry::<u64>(self.completed).read() };
            self.free.push(chunk);
            self.completed = self.completed.wrapping_add(1);
        }
        self.completions
            .consumer()
            .store(self.completed, Ordering::Release);
    }
}

/// A ring of entries shared with the kernel, and its counters.
#[derive(Debug)]
struct Ring {
    memory: Memory,
    producer: usize,
    consumer: usize,
    entries: usize,
    mask: u32,
}

impl Ring {
    /// Maps the ring of `count` entries (a power of two) of type `T` at `offset` of the socket.
    fn map<T>(
        socket: &Socket,
        (offset, parts): (u64, &libc::xdp_ring_offset),
        count: u32,
    ) -> io::Result<Self> {
        let [producer, consumer, entries] =
            [parts.producer, parts.consumer, parts.desc].map(|part| part as usize);
        let len = entries + count as usize * size_of::<T>();
        Ok(Self {
            memory: Memory::map(Some(socket.as_fd()), offset as i64, len)?,
            producer,
            consumer,
            entries,
            mask: count - 1,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        let counter = self.memory.at(self.producer, size_of::<u32>());
        // SAFETY: a counter within the mapping, aligned by the kernel, and only touched atomically.
        unsafe { AtomicU32::from_ptr(counter.cast()) }
    }

    fn consumer(&self) -> &AtomicU32 {
        let counter = self.memory.at(self.consumer, size_of::<u32>());
        // SAFETY: as in `producer`.
        unsafe { AtomicU32::from_ptr(counter.cast()) }
    }

    /// Returns the entry with this running index. `T` must be the type of the ring's entries.
    fn entry<T>(&self, number: u32) -> *mut T {
        let at = self.entries + (number & self.mask) as usize * size_of::<T>();
        self.memory.at(at, size_of::<T>()).cast()
    }
}

fn bind(socket: &Socket, ifindex: u32) -> io::Result<()> {
    let address = address(|address: &mut libc::sockaddr_xdp| {
        address.sxdp_family = libc::AF_XDP as u16;
        address.sxdp_flags = libc::XDP_COPY;
        address.sxdp_ifindex = ifindex;
    });
    let (times, pause) = BUSY;
    for _ in 0..times {
        match socket.bind(&address) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(pause),
            answer => return answer,
        }
    }
    socket.bind(&address)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::io::PacketIo as _;
    use crate::net::{Netns, Network, VethEnd};
    use crate::port::Port;
    use std::process::Command;
    use std::time::Instant;

    pub(crate) const INDEX: u32 = 11;

    /// A veth pair. `near` is in this namespace; `far` has an open port in its own namespace.
    pub(crate) struct Pair {
        pub(crate) here: Netns,
        pub(crate) there: Netns,
        pub(crate) far: Port,
    }

    impl Pair {
        /// Creates the pair; `None` if the kernel lacks namespaces or AF_XDP.
        pub(crate) fn new() -> Option<Self> {
            let xdp = Socket::new(Domain::from(libc::AF_XDP), Type::RAW, None);
            let (Ok(here), Ok(_)) = (Netns::new(), xdp) else {
                eprintln!("skipped: no network namespace can be made, or there is no AF_XDP");
                return None;
            };
            let there = Netns::new().unwrap();
            let end = |name, mac| VethEnd {
                name,
                index: INDEX,
                mac: [2, 0, 0, 0, mac, 1],
            };
            here.run(|| {
                let mut network = Network::open()?;
                network.add_veth(end("near", 1), end("far", 2), there.as_fd())?;
                network.set_up(INDEX)
            })
            .unwrap();
            let far = there.run(|| {
                Network::open()?.set_up(INDEX)?;
                Ok(Port::open("far").unwrap())
            });
            let far = far.unwrap();
            Some(Self { here, there, far })
        }

        fn sender(&self) -> io::Result<XdpSender> {
            self.here.run(|| XdpSender::new(INDEX, 1518))
        }

        fn set_far_up(&self, up: bool) {
            let set = |network: &mut Network| match up {
                true => network.set_up(INDEX),
                false => network.set_down(INDEX),
            };
            self.there.run(|| set(&mut Network::open()?)).unwrap();
            if up {
                let carrier = || {
                    let link = self.here.run(|| Network::open()?.link(INDEX)).unwrap();
                    link.unwrap().carrier
                };
                let since = Instant::now();
                while !carrier() {
                    assert!(since.elapsed().as_secs() < 30, "no carrier");
                }
            }
        }

        /// Returns the numbers of the arriving frames, up to `last`.
        fn arrive_until(&mut self, last: u32) -> Vec<u32> {
            let mut numbers = Vec::new();
            let since = Instant::now();
            while numbers.last() != Some(&last) {
                assert!(since.elapsed().as_secs() < 30, "only {numbers:?} came");
                let mut each = |frame: &[u8]| {
                    let frame = if frame[12] == 0x81 {
                        &frame[4..]
                    } else {
                        frame
                    };
                    if frame[12..14] == [0x88, 0xb5] {
                        numbers.push(u32::from_be_bytes(frame[14..18].try_into().unwrap()));
                    }
                };
                // The interface may have been down.
                let _ = self.far.receive(usize::MAX, &mut each);
            }
            numbers
        }
    }

    fn frame(number: u32) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        frame[14..18].copy_from_slice(&number.to_be_bytes());
        frame
    }

    fn push(sender: &mut XdpSender, numbers: std::ops::Range<u32>) {
        for number in numbers {
            assert!(sender.push(&frame(number)), "{number}");
        }
    }

    #[test]
    fn more_batches_than_there_is_memory_for_arrive_in_order() {
        let Some(mut pair) = Pair::new() else { return };
        let mut sender = pair.sender().unwrap();
        let mut losses = Losses::default();
        for batch in 0..30 {
            push(&mut sender, batch * 64..(batch + 1) * 64);
            assert!(!sender.push(&frame(0)), "a batch has 64");
            sender.send(&mut losses).unwrap();
            let come = pair.arrive_until(batch * 64 + 63);
            assert_eq!(come, (batch * 64..(batch + 1) * 64).collect::<Vec<_>>());
        }
        assert_eq!(losses, Losses::default());
        assert_eq!(sender.free.len(), CHUNKS as usize);
    }

    #[test]
    fn frames_without_carrier_are_counted_once_and_never_sent_later() {
        let Some(mut pair) = Pair::new() else { return };
        let mut sender = pair.sender().unwrap();
        let mut losses = Losses::default();
        pair.set_far_up(false);
        // More frames than the rings hold.
        for batch in 0..20 {
            push(&mut sender, batch * 64..batch * 64 + 50);
            sender.send(&mut losses).unwrap();
            assert_eq!(losses.not_sent, (u64::from(batch) + 1) * 50);
            assert_eq!(sender.free.len(), CHUNKS as usize);
        }
        pair.set_far_up(true);
        push(&mut sender, 5000..5064);
        sender.send(&mut losses).unwrap();
        assert_eq!(pair.arrive_until(5063), (5000..5064).collect::<Vec<_>>());
        assert_eq!(losses.not_sent, 1000);
    }

    #[test]
    fn frames_for_a_down_interface_are_an_error_and_counted_once() {
        let Some(pair) = Pair::new() else { return };
        let mut sender = pair.sender().unwrap();
        let mut losses = Losses::default();
        pair.here.run(|| Network::open()?.set_down(INDEX)).unwrap();
        push(&mut sender, 0..50);
        let error = sender.send(&mut losses).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENETDOWN));
        assert_eq!(losses.not_sent, 50);
    }

    #[test]
    fn frames_without_room_wait_in_order_for_the_next_call() {
        let Some(mut pair) = Pair::new() else { return };
        // While the qdisc of the lower interface holds frames, they occupy the socket's memory.
        for command in [
            "ip link add above index 20 type bridge",
            "ip link set near master above",
            "ip link set above up",
            "tc qdisc add dev near root tbf rate 10mbit burst 10kb limit 10mb",
        ] {
            let mut words = command.split(' ');
            let mut command = Command::new(words.next().unwrap());
            let done = pair.here.run(|| command.args(words).status());
            if !done.is_ok_and(|status| status.success()) {
                eprintln!("skipped: no {command:?}");
                return;
            }
        }
        let sender = pair.here.run(|| XdpSender::new(20, 1518));
        let (mut sender, mut losses) = (sender.unwrap(), Losses::default());
        let mut taken = Vec::new();
        for number in 0.. {
            let mut frame = frame(number);
            frame.resize(1500, 0);
            if !sender.push(&frame) {
                if sender.is_waiting() && number > 300 {
                    break;
                }
                sender.send(&mut losses).unwrap();
                continue;
            }
            taken.push(number);
        }
        assert!(sender.is_waiting());
        let since = Instant::now();
        while sender.is_waiting() {
            assert!(since.elapsed().as_secs() < 30, "still no room");
            sender.send(&mut losses).unwrap();
        }
        assert_eq!(losses, Losses::default());
        assert_eq!(pair.arrive_until(*taken.last().unwrap()), taken);
    }

    #[test]
    fn an_interface_that_goes_away_is_an_error() {
        let Some(pair) = Pair::new() else { return };
        let mut sender = pair.sender().unwrap();
        pair.here.run(|| Network::open()?.delete(INDEX)).unwrap();
        push(&mut sender, 0..10);
        let mut losses = Losses::default();
        assert!(sender.send(&mut losses).is_err());
        assert_eq!(losses.not_sent, 10);
    }

    #[test]
    fn a_queue_has_one_sender_and_is_free_soon_after_it() {
        let Some(pair) = Pair::new() else { return };
        let sender = pair.sender().unwrap();
        let error = pair.sender().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBUSY));
        drop(sender);
        let since = Instant::now();
        while let Err(error) = pair.sender() {
            assert!(since.elapsed().as_secs() < 30, "{error}");
        }
    }
}
