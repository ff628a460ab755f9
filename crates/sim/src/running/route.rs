//! Route of a packet after a link: further links, the path after the last link, the packet's conversation.

use crate::links::{Beyond, Link, Passage, Tunnels};
use crate::packets::SimPacket;
use crate::traffic::{Conversation, Events};
use crate::variant::Variant;
use asymq_scenario::Direction;

pub(super) const UP: usize = Direction::Up as usize;
pub(super) const DOWN: usize = Direction::Down as usize;

/// Delivers a packet to its conversation. The packet leaves the last link at `at`.
#[inline(always)]
pub(super) fn hand_over<V: Variant, const DIRECTION: usize>(
    at: u64,
    packet: &SimPacket<V::Options>,
    conversations: &mut [Conversation<V>],
    events: &mut Events,
    tunnels: &mut Tunnels,
) {
    if let Some(tunnel) = packet.tunnel()
        && !tunnels.leaves(way::<DIRECTION>(), tunnel, packet)
    {
        return;
    }
    let conversation = &mut conversations[packet.conversation()];
    if packet.generation() == conversation.layout.generation() {
        conversation.deliver::<DIRECTION>(at, packet.segment, events);
    }
}

pub(super) const fn way<const DIRECTION: usize>() -> Direction {
    if DIRECTION == UP {
        Direction::Up
    } else {
        Direction::Down
    }
}

/// Route of a packet after a link, for scenarios with further links or a path after the first link.
pub(super) struct Route<'a, V: Variant> {
    pub(super) beyond: &'a mut Beyond<V::Options>,
    /// The first link of the other direction.
    pub(super) opposite: &'a mut Link<V::Options>,
    pub(super) conversations: &'a mut [Conversation<V>],
    pub(super) events: &'a mut Events,
    pub(super) tunnels: &'a mut Tunnels,
}

impl<V: Variant> Route<'_, V> {
    /// Forwards a packet that leaves the link at `position` of a chain at time `at`.
    #[cold]
    pub(super) fn pass_on<const DIRECTION: usize>(
        &mut self,
        position: usize,
        at: u64,
        packet: &SimPacket<V::Options>,
    ) {
        let beyond = &mut *self.beyond;
        if position < beyond.len() {
            // The last link of one direction and the first of the other connect the same routers.
            let reverse = beyond.link(1 - DIRECTION, beyond.len() - position - 1);
            if reverse.observes() {
                reverse.observe(at, packet.header);
            }
            let conversation = &self.conversations[packet.conversation()];
            if conversation.span(DIRECTION, beyond.len() + 1).1 > position {
                beyond.push(DIRECTION, position, at, packet);
            } else {
                hand_over::<V, DIRECTION>(
                    at,
                    packet,
                    self.conversations,
                    self.events,
                    self.tunnels,
                );
            }
        } else if let Passage::Out(at) = beyond.wires[DIRECTION].pass(at, packet) {
            self.arrive::<DIRECTION>(at, packet);
        }
    }

    /// Delivers a packet that has passed the last link and its path, at time `at`. ACK regeneration processes packets
    /// of the uplink and observes packets of the downlink.
    pub(super) fn arrive<const DIRECTION: usize>(
        &mut self,
        at: u64,
        packet: &SimPacket<V::Options>,
    ) {
        if self.opposite.observes() {
            self.opposite.observe(at, packet.header);
        }
        let (conversations, events) = (&mut *self.conversations, &mut *self.events);
        let tunnels = &mut *self.tunnels;
        let Some(regeneration) = &mut self.beyond.regeneration else {
            return hand_over::<V, DIRECTION>(at, packet, conversations, events, tunnels);
        };
        if DIRECTION == DOWN {
            regeneration.observe(at, packet);
            return hand_over::<V, DIRECTION>(at, packet, conversations, events, tunnels);
        }
        regeneration.pass(at, packet, |at, packet| {
            let layout = &conversations[packet.conversation()].layout;
            let packet = SimPacket {
                segment: layout.as_regenerated(packet),
                ..*packet
            };
            hand_over::<V, DIRECTION>(at, &packet, conversations, events, tunnels);
        });
    }
}
