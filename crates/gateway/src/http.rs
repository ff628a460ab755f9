//! A subset of HTTP/1.1 for read-only pages: GET and HEAD, no body, one request per connection.

use crate::clients::RequestState;
use httparse::{EMPTY_HEADER, Error, Request, Status};

pub(crate) const MAX_HEAD: usize = 8192;
const MAX_HEADERS: usize = 64;

/// A page: its media type and its body.
pub(crate) struct Page {
    pub(crate) kind: &'static str,
    pub(crate) body: Vec<u8>,
}

/// Returns the response to a request; `None` if more bytes are needed, or if the client has left. `page` maps a path
/// with query to a page; `known` is the text of a 404. Rejects host names that the public DNS could resolve.
pub(crate) fn respond(
    bytes: &[u8],
    state: RequestState,
    known: &str,
    page: &mut dyn FnMut(&str) -> Option<Page>,
) -> Option<Vec<u8>> {
    let refused = |status| Some(response(status, "", "", false));
    let said = |status, text, head_only| Some(response(status, "text/plain", text, head_only));
    match state {
        RequestState::TooLong => return refused("431 Request Header Fields Too Large"),
        RequestState::TimedOut => return refused("408 Request Timeout"),
        RequestState::Partial | RequestState::Complete => {}
    }
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) => return None,
        Err(Error::TooManyHeaders) => return refused("431 Request Header Fields Too Large"),
        Err(_) => return refused("400 Bad Request"),
    }
    let head_only = match request.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return refused("405 Method Not Allowed\r\nAllow: GET, HEAD"),
    };
    let announces_body = request.headers.iter().any(|header| {
        header.name.eq_ignore_ascii_case("transfer-encoding")
            || header.name.eq_ignore_ascii_case("content-length") && header.value != b"0"
    });
    if announces_body {
        return refused("413 Content Too Large");
    }
    let is_host = |name: &str| name.eq_ignore_ascii_case("host");
    let mut headers = request.headers.iter();
    if headers.any(|header| is_host(header.name) && !is_local(header.value)) {
        let text = "use this host's address, or its name in your own network\n";
        return said("421 Misdirected Request", text, head_only);
    }
    match request.path.and_then(page) {
        Some(Page { kind, body }) => Some(response("200 OK", kind, body, head_only)),
        None => said("404 Not Found", known, head_only),
    }
}

/// True for addresses and local names. Other names are rejected, because a web site can make its own name resolve to
/// this host (DNS rebinding).
fn is_local(host: &[u8]) -> bool {
    const LOCAL: [&str; 6] = [
        "local",
        "lan",
        "home",
        "internal",
        "localhost",
        "localdomain",
    ];
    let Ok(host) = std::str::from_utf8(host) else {
        return false;
    };
    if let Some(bracketed) = host.strip_prefix('[') {
        let address = bracketed
            .split_once(']')
            .map(|(address, _)| address.parse());
        return matches!(address, Some(Ok::<std::net::Ipv6Addr, _>(_)));
    }
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let last = name.rsplit_once('.').map(|(_, last)| last);
    let is_own = |last: &str| LOCAL.contains(&last) || name.ends_with(".home.arpa");
    name.parse::<std::net::Ipv4Addr>().is_ok() || last.is_none_or(is_own)
}

/// Prevents pages from loading content from other sites, sending data to them, and being framed by them.
const PROTECTION: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
    X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n";

fn response(status: &str, kind: &str, body: impl AsRef<[u8]>, head_only: bool) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let kind = match kind {
        "" => String::new(),
        kind => format!("Content-Type: {kind}\r\n"),
    };
    let body = if head_only { &[] } else { body };
    let head = format!(
        "HTTP/1.1 {status}\r\n{kind}{PROTECTION}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(request: &str) -> Option<String> {
        let page = &mut |path: &str| {
            let is_there = path.split('?').next() == Some("/metrics");
            is_there.then(|| Page {
                kind: "text/plain",
                body: "the page\n".into(),
            })
        };
        respond(
            request.as_bytes(),
            RequestState::Partial,
            "elsewhere\n",
            page,
        )
        .map(|answer| String::from_utf8(answer).unwrap())
    }

    #[test]
    fn only_a_page_that_can_be_read_is_served() {
        for (request, status) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200 "),
            ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200 "),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", "200 "),
            ("GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "404 "),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405 "),
            (
                "GET /x HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n",
                "413 ",
            ),
            (
                "GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "413 ",
            ),
            ("\0\0\0\0\r\n\r\n", "400 "),
        ] {
            let answer = answer(request).unwrap();
            let found = answer.strip_prefix("HTTP/1.1 ").unwrap();
            assert!(found.starts_with(status), "{request}: {answer}");
        }
    }

    #[test]
    fn no_page_is_shown_by_a_name_that_anybody_can_give() {
        let status = |host: &str| {
            let answer = answer(&format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            answer.unwrap()[9..12].to_owned()
        };
        for own in [
            "127.0.0.1:9801",
            "[::1]:9801",
            "localhost:9801",
            "box",
            "Box.LAN",
            "gw.home.arpa.",
        ] {
            assert_eq!(status(own), "200", "{own}");
        }
        for foreign in [
            "evil.example:9801",
            "[evil].example",
            "x\r\nHost: evil.example",
            "127.0.0.1.evil.example",
            "xlan.example",
            "a.notlan",
            "\u{e9}.x",
        ] {
            assert_eq!(status(foreign), "421", "{foreign}");
        }
    }

    #[test]
    fn a_head_has_the_length_of_the_page_and_no_page() {
        let (get, head) = (
            answer("GET /metrics HTTP/1.1\r\n\r\n").unwrap(),
            answer("HEAD /metrics HTTP/1.1\r\n\r\n").unwrap(),
        );
        assert_eq!(get, head + "the page\n");
    }

    #[test]
    fn a_head_that_is_not_complete_is_waited_for_and_many_headers_are_refused() {
        assert_eq!(answer("GET /metrics HTTP/1.1\r\nHost: x\r\n"), None);
        let headers = "X: y\r\n".repeat(MAX_HEADERS + 1);
        let refused = answer(&format!("GET /metrics HTTP/1.1\r\n{headers}\r\n")).unwrap();
        assert!(refused.starts_with("HTTP/1.1 431 "), "{refused}");
    }
}
