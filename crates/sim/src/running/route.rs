//! The way of a packet that is out of a link: further links, the path behind the last, its conversation.

use crate::links::{Beyond, Link, Passage, Tunnels};
use crate::packets::SimPacket;
use crate::traffic::{Conversation, Events};
use crate::variant::Variant;
use asymq_scenario::Toward;

/// Indices of the directions.
pub(super) const UP: usize = Toward::Up as usize;
pub(super) const DOWN: usize = Toward::Down as usize;

/// Delivers a packet that is out of the last link at `at` to its conversation.
#[inline(always)]
pub(super) fn hand_over<V: Variant, const TOWARD: usize>(
    at: u64,
    packet: &SimPacket<V::Options>,
    conversations: &mut [Conversation<V>],
    events: &mut Events,
    tunnels: &mut Tunnels,
) {
    if let Some(tunnel) = packet.tunnel()
        && !tunnels.leaves(way::<TOWARD>(), tunnel, packet)
    {
        return;
    }
    let conversation = &mut conversations[packet.conversation()];
    if packet.generation() == conversation.layout.generation() {
        conversation.deliver::<TOWARD>(at, packet.segment, events);
    }
}

/// The direction at an index.
pub(super) const fn way<const TOWARD: usize>() -> Toward {
    if TOWARD == UP {
        Toward::Up
    } else {
        Toward::Down
    }
}

/// The way of a packet that is out of a link, where a scenario has anything beyond the first one.
pub(super) struct Route<'a, V: Variant> {
    pub(super) beyond: &'a mut Beyond<V::Options>,
    /// The first link of the other direction.
    pub(super) opposite: &'a mut Link<V::Options>,
    pub(super) conversations: &'a mut [Conversation<V>],
    pub(super) events: &'a mut Events,
    pub(super) tunnels: &'a mut Tunnels,
}

impl<V: Variant> Route<'_, V> {
    /// A packet is out of the link at `position` of a chain at `at`.
    #[cold]
    pub(super) fn pass_on<const TOWARD: usize>(
        &mut self,
        position: usize,
        at: u64,
        packet: &SimPacket<V::Options>,
    ) {
        let beyond = &mut *self.beyond;
        if position < beyond.len() {
            // The last link of one direction and the first of the other connect the same routers.
            let reverse = beyond.link(1 - TOWARD, beyond.len() - position - 1);
            if reverse.observes() {
                reverse.observe(at, packet.header);
            }
            let conversation = &self.conversations[packet.conversation()];
            if conversation.span(TOWARD, beyond.len() + 1).1 > position {
                beyond.push(TOWARD, position, at, packet);
            } else {
                hand_over::<V, TOWARD>(at, packet, self.conversations, self.events, self.tunnels);
            }
        } else if let Passage::Out(at) = beyond.wires[TOWARD].pass(at, packet) {
            self.arrive::<TOWARD>(at, packet);
        }
    }

    /// A packet is behind the last link and its path at `at`. ACK regeneration is there for the uplink's
    /// packets, and sees the downlink's.
    pub(super) fn arrive<const TOWARD: usize>(&mut self, at: u64, packet: &SimPacket<V::Options>) {
        if self.opposite.observes() {
            self.opposite.observe(at, packet.header);
        }
        let (conversations, events) = (&mut *self.conversations, &mut *self.events);
        let tunnels = &mut *self.tunnels;
        let Some(regeneration) = &mut self.beyond.regeneration else {
            return hand_over::<V, TOWARD>(at, packet, conversations, events, tunnels);
        };
        if TOWARD == DOWN {
            regeneration.observe(at, packet);
            return hand_over::<V, TOWARD>(at, packet, conversations, events, tunnels);
        }
        regeneration.pass(at, packet, |at, packet| {
            let layout = &conversations[packet.conversation()].layout;
            let packet = SimPacket {
                segment: layout.as_regenerated(packet),
                ..*packet
            };
            hand_over::<V, TOWARD>(at, &packet, conversations, events, tunnels);
        });
    }
}
