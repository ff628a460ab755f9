//! The bytes that a link charges, compared with an independent implementation of `tc-cake(8)`.

use asymq_core::decide::frame::Parsed;
use asymq_core::decide::overhead::Overhead;
use asymq_core::packet::Header;
use proptest::prelude::*;

/// Keywords of an overhead, and the numbers that they set.
#[derive(Clone, Debug)]
struct Link {
    raw: bool,
    bytes: Option<i32>,
    mpu: Option<u32>,
    framing: &'static str,
}

impl Link {
    fn text(&self) -> String {
        let mut words = vec![];
        words.extend(self.raw.then(|| "raw".to_owned()));
        words.extend(self.bytes.map(|bytes| format!("overhead {bytes}")));
        words.extend(self.mpu.map(|mpu| format!("mpu {mpu}")));
        words.push(self.framing.to_owned());
        words.join(" ")
    }

    fn counts_frames(&self) -> bool {
        self.raw || self.bytes.is_none()
    }

    fn charge(&self, len: u32) -> u32 {
        let charged = i64::from(len) + i64::from(self.bytes.unwrap_or(0));
        let floor = i64::from(self.mpu.unwrap_or(0)).max(1);
        let charged = if charged < floor { floor } else { charged };
        let parts = |of: i64| charged / of + i64::from(charged % of > 0);
        let charged = match self.framing {
            "atm" => parts(48) * 53,
            "ptm" => charged + parts(64),
            _ => charged,
        };
        u32::try_from(charged).unwrap()
    }
}

fn links() -> impl Strategy<Value = Link> {
    let framing = prop::sample::select(vec!["noatm", "atm", "ptm"]);
    let bytes = prop::option::of(-64..=256);
    let mpu = prop::option::of(0u32..=256);
    (any::<bool>(), bytes, mpu, framing).prop_map(|(raw, bytes, mpu, framing)| Link {
        raw,
        bytes,
        mpu,
        framing,
    })
}

proptest! {
    #[test]
    fn any_link_charges_by_its_words(
        link in links(), ip_len in 0u32..3000, link_header in 0u16..40, padding in 0u32..50,
    ) {
        let overhead: Overhead = link.text().parse().unwrap();
        prop_assert_eq!(overhead.counts_frames(), link.counts_frames());
        prop_assert_eq!(overhead.charge_len(ip_len), link.charge(ip_len));
        let frame_len = u32::from(link_header) + ip_len + padding;
        let header = Header { ip_len, ..Header::default() };
        let parsed = Parsed { header, network: link_header, transport: 0 };
        let len = match (link.counts_frames(), ip_len) {
            (true, _) => frame_len,
            // Non-IP frames are charged from the network offset.
            (false, 0) => padding,
            (false, _) => ip_len,
        };
        prop_assert_eq!(overhead.charge(&parsed, frame_len), link.charge(len));
    }

    #[test]
    fn any_link_reads_back_as_it_prints(link in links()) {
        let overhead: Overhead = link.text().parse().unwrap();
        let again: Overhead = overhead.to_string().parse().unwrap();
        prop_assert_eq!(overhead, again);
    }

    #[test]
    fn numbers_beyond_their_range_are_refused(bytes in prop_oneof![-1000i32..-64, 257i32..1000]) {
        let texts = [format!("overhead {bytes}"), format!("mpu {}", bytes.abs() + 200)];
        for text in texts {
            prop_assert!(text.parse::<Overhead>().is_err(), "{}", text);
        }
    }
}

#[test]
fn keywords_add_up_within_the_range_of_a_number() {
    let bytes = |words: &str| {
        words
            .parse::<Overhead>()
            .map(|overhead| overhead.to_string())
    };
    // 6 * 40 + 4 * 4 = 256.
    let most = [["pppoe-llcsnap"; 6].join(" "), ["ether-vlan"; 4].join(" ")].join(" ");
    assert_eq!(bytes(&most).as_deref(), Ok("overhead 256 atm"));
    assert!(bytes(&format!("{most} ether-vlan")).is_err());
}
