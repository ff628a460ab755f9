//! Parts that all pages with live drawings share: the playground's and the gateway's.

/// Drawing on canvas: queues packet by packet, and curves.
pub const DRAW: &str = include_str!("../page/draw.js");
/// Colours, for light and dark pages, and layout from phone to desk.
pub const STYLE: &str = include_str!("../page/style.css");
