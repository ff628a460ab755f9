//! Tests of the public interface.
//!
//! All tests are one program, because each program links the whole crate. Tests with their own allocator are separate.

#[path = "common/acks.rs"]
mod acks;
#[path = "common/facts.rs"]
mod facts;
#[path = "common/frames.rs"]
mod frames;
#[path = "common/marks.rs"]
mod marks;
#[path = "common/mutate.rs"]
mod mutate;
#[path = "common/receiver.rs"]
mod receiver;
#[path = "common/sender.rs"]
mod sender;
#[path = "common/sent.rs"]
mod sent;
#[path = "common/traffic.rs"]
mod traffic;

mod ack_knowledge;
mod ack_rules;
mod ack_safety;
mod aq;
mod asymq;
mod bounded_work;
mod documentation;
mod ecn_marks;
mod egress;
mod frame_facts;
mod golden;
mod hostile_frames;
mod laws;
mod link_lengths;
mod linux_qdiscs;
mod mutated_acks;
mod neighbours;
mod opaque_acks;
mod overhead;
mod probes;
mod scalable;
mod units;
