//! Page of a gateway for browsers: static files, and its state as JSON.

use crate::flows::FlowRequests;
use crate::history::History;
use crate::hosts::hosts_json;
use crate::http::Page;
use crate::snapshot::Shared;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;

/// A page to serve.
#[derive(Clone, Copy, Debug)]
pub struct PageOptions {
    /// Address to listen at.
    pub address: SocketAddr,
    /// Files: name, media type and content. The empty name is the page itself.
    pub files: &'static [(&'static str, &'static str, &'static str)],
}

impl PageOptions {
    /// Returns the function that maps a path with query to a page.
    pub(crate) fn answers(
        self,
        history: &History,
        stats: &Shared,
        requests: &FlowRequests,
        title: impl Fn() -> String,
    ) -> impl FnMut(&str) -> Option<Page> {
        let id = RandomState::new().build_hasher().finish() >> 16;
        move |path| {
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let after = || match query.strip_prefix("after=") {
                Some(after) => after.parse().ok(),
                None => Some(0),
            };
            let json = |body: String| Page {
                kind: "application/json",
                body: body.into(),
            };
            Some(match path.strip_prefix('/')? {
                "history" => json(history.json(after()?, id, &title())),
                "hosts" => {
                    requests.request();
                    json(hosts_json(&stats.flows()))
                }
                name => {
                    let (_, kind, body) = self.files.iter().find(|(of, _, _)| *of == name)?;
                    Page {
                        kind,
                        body: (*body).into(),
                    }
                }
            })
        }
    }
}
