//! The report: one self-contained HTML page, readable without JavaScript, and its summary as Markdown.

mod check;
mod columns;
mod contents;
mod figure;
mod markdown;
mod page;
mod panel;
mod section;
mod table;
mod verdict;

pub use markdown::summary;
pub use page::page;
