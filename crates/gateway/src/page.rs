//! A page that shows a gateway in a browser: files that are given, and the last hour as JSON.

use crate::history::History;
use crate::http::Page;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;

/// A page to serve.
#[derive(Clone, Copy, Debug)]
pub struct PageOptions {
    /// Address to listen at.
    pub address: SocketAddr,
    /// Its files: name, media type and text. That without a name is the page itself.
    pub files: &'static [(&'static str, &'static str, &'static str)],
}

impl PageOptions {
    /// Answers to requests for paths with queries.
    pub(crate) fn answers(
        self,
        history: &History,
        title: impl Fn() -> String,
    ) -> impl FnMut(&str) -> Option<Page> {
        let id = RandomState::new().build_hasher().finish() >> 16;
        move |path| {
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let name = path.strip_prefix('/')?;
            if name == "history" {
                let after = query
                    .strip_prefix("after=")
                    .map_or(Some(0), |of| of.parse().ok())?;
                return Some(Page {
                    kind: "application/json",
                    body: history.json(after, id, &title()),
                });
            }
            let (_, kind, body) = self.files.iter().find(|(of, _, _)| *of == name)?;
            Some(Page {
                kind,
                body: (*body).into(),
            })
        }
    }
}
