//! A service of this crate, called without a vtable, or a service of another crate.

use super::{
    AckCredit, AcksFirst, Departure, DueFirst, Heads, InOrder, Next, PacedShares, RoundRobin,
    Service, WeightedBytes,
};
use crate::decide::control::Settings;
use crate::{Instant, Probe};
use alloc::boxed::Box;

macro_rules! services {
    ($($name:ident),*) => {
        /// A service. Services of this crate are called without a vtable, because they are called twice per packet.
        pub enum AnyService {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)*
            /// A service of another crate.
            Other(Box<dyn Service + Send>),
        }

        $(impl From<$name> for AnyService {
            fn from(service: $name) -> Self {
                Self::$name(service)
            }
        })*

        impl Service for AnyService {
            #[inline(always)]
            fn next(&mut self, now: Instant, heads: Heads) -> Next {
                match self {
                    $(Self::$name(service) => service.next(now, heads),)*
                    Self::Other(service) => service.next(now, heads),
                }
            }

            #[inline(always)]
            fn sent(&mut self, now: Instant, departure: Departure) {
                match self {
                    $(Self::$name(service) => service.sent(now, departure),)*
                    Self::Other(service) => service.sent(now, departure),
                }
            }

            fn follows_rates(&self) -> bool {
                match self {
                    $(Self::$name(service) => service.follows_rates(),)*
                    Self::Other(service) => service.follows_rates(),
                }
            }

            fn needs_acked_bytes(&self) -> bool {
                match self {
                    $(Self::$name(service) => service.needs_acked_bytes(),)*
                    Self::Other(service) => service.needs_acked_bytes(),
                }
            }

            fn tune(&mut self, settings: &Settings) {
                match self {
                    $(Self::$name(service) => service.tune(settings),)*
                    Self::Other(service) => service.tune(settings),
                }
            }

            fn probe(&self, show: &mut Probe<'_>) {
                match self {
                    $(Self::$name(service) => service.probe(show),)*
                    Self::Other(service) => service.probe(show),
                }
            }
        }
    };
}

services!(
    InOrder,
    AcksFirst,
    RoundRobin,
    WeightedBytes,
    PacedShares,
    AckCredit,
    DueFirst
);
