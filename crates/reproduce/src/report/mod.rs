//! The report: one self-contained HTML page, readable without JavaScript, and its summary as Markdown.

mod figure;
mod markdown;
mod page;
mod panel;
mod table;

pub use markdown::summary;
pub use page::{About, page};
