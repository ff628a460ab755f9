//! The configuration at `/.well-known/nq`: JSON with the URLs of the test.

use asymq_scenario::quoted;
use http::Uri;
use http::uri::Authority;
use serde::{Deserialize, Serialize};

/// Path of the configuration on a server.
pub(super) const WELL_KNOWN: &str = "/.well-known/nq";
/// Paths of the server's objects.
pub(super) const SMALL: &str = "/small";
pub(super) const LARGE: &str = "/large";
pub(super) const UPLOAD: &str = "/upload";

/// The JSON object. As required by the draft, duplicate keys are errors, and unknown keys are ignored.
#[derive(Debug, Serialize, Deserialize)]
struct Config {
    version: u64,
    urls: Urls,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_endpoint: Option<String>,
}

/// Names of the URLs: with `https` in drafts up to -02, without `https` in later ones.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Urls {
    large_download_url: Option<String>,
    small_download_url: Option<String>,
    upload_url: Option<String>,
    large_https_download_url: Option<String>,
    small_https_download_url: Option<String>,
    https_upload_url: Option<String>,
}

/// URLs of a client's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoints {
    pub(super) large: Uri,
    pub(super) small: Uri,
    pub(super) upload: Uri,
    /// Host to connect to in place of the URLs' host.
    pub(super) test_endpoint: Option<String>,
}

impl Endpoints {
    /// Reads a configuration.
    ///
    /// # Errors
    /// The configuration is invalid; the text names the mistake.
    pub(super) fn read(json: &[u8]) -> Result<Self, String> {
        let config: Config = serde_json::from_slice(json).map_err(|error| {
            let error = quoted(&error.to_string());
            format!("the configuration is not valid JSON of this test ({error})")
        })?;
        if config.version != 1 {
            return Err(format!(
                "the configuration has version {}; only 1 is supported",
                config.version
            ));
        }
        let urls = config.urls;
        let large = https(
            "large_download_url",
            urls.large_https_download_url,
            urls.large_download_url,
        )?;
        let small = https(
            "small_download_url",
            urls.small_https_download_url,
            urls.small_download_url,
        )?;
        let upload = https("upload_url", urls.https_upload_url, urls.upload_url)?;
        if large.authority() != small.authority() || large.authority() != upload.authority() {
            return Err("the configuration's URLs have different hosts".into());
        }
        let is_host = |host: &String| {
            host.parse::<Authority>()
                .is_ok_and(|authority| authority.host() == host)
        };
        if config
            .test_endpoint
            .as_ref()
            .is_some_and(|host| !is_host(host))
        {
            return Err("the configuration's test_endpoint is not a host".into());
        }
        Ok(Self {
            large,
            small,
            upload,
            test_endpoint: config.test_endpoint,
        })
    }

    /// Writes the configuration of this project's server under the name `authority`.
    pub(super) fn write(authority: &Authority) -> Vec<u8> {
        let url = |path: &str| Some(format!("https://{authority}{path}"));
        let config = Config {
            version: 1,
            urls: Urls {
                large_download_url: url(LARGE),
                small_download_url: url(SMALL),
                upload_url: url(UPLOAD),
                large_https_download_url: url(LARGE),
                small_https_download_url: url(SMALL),
                https_upload_url: url(UPLOAD),
            },
            test_endpoint: None,
        };
        serde_json::to_vec(&config).unwrap_or_default()
    }
}

/// Returns `old` or, if absent, `new`. The URL must be absolute, with https.
fn https(name: &str, old: Option<String>, new: Option<String>) -> Result<Uri, String> {
    let url = old
        .or(new)
        .ok_or_else(|| format!("the configuration lacks {name}"))?;
    let uri: Uri = url
        .parse()
        .map_err(|_| format!("the configuration's {name} is not a URL"))?;
    let has_host = uri.host().is_some_and(|host| !host.is_empty());
    if uri.scheme_str() != Some("https") || !has_host {
        return Err(format!(
            "the configuration's {name} is not https://HOST/..."
        ));
    }
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const URLS: &str = r#""large_download_url":"https://a.example:1/l","small_download_url":"https://a.example:1/s","upload_url":"https://a.example:1/u""#;

    fn read(text: &str) -> Result<Endpoints, String> {
        Endpoints::read(text.as_bytes())
    }

    #[test]
    fn the_drafts_object_is_read_and_unknown_names_are_ignored() {
        let text = format!(
            r#"{{"new":[1],"test_endpoint":"b.example","urls":{{{URLS},"x":1}},"version":1}}"#
        );
        let endpoints = read(&text).unwrap();
        assert_eq!(endpoints.large, "https://a.example:1/l");
        assert_eq!(endpoints.small.path(), "/s");
        assert_eq!(endpoints.upload.path(), "/u");
        assert_eq!(endpoints.test_endpoint.as_deref(), Some("b.example"));
    }

    #[test]
    fn names_with_https_come_first_because_older_servers_have_http_in_the_others() {
        let old = r#""large_https_download_url":"https://a.example:1/L","large_download_url":"http://a.example/l","#;
        let rest = URLS.split_once(',').unwrap().1;
        let endpoints = read(&format!(r#"{{"version":1,"urls":{{{old}{rest}}}}}"#)).unwrap();
        assert_eq!(endpoints.large.path(), "/L");
    }

    #[test]
    fn input_that_the_draft_calls_invalid_is_refused_with_a_reason() {
        let object = |version: &str, urls: &str, rest: &str| {
            format!(r#"{{"version":{version},"urls":{{{urls}}}{rest}}}"#)
        };
        for (text, reason) in [
            (object("2", URLS, ""), "version 2"),
            (
                object("1", URLS, r#","version":1"#),
                "duplicate field `version`",
            ),
            (
                object("1", &format!("{URLS},{URLS}"), ""),
                "duplicate field",
            ),
            (
                format!(r#"{{"urls":{{{URLS}}}}}"#),
                "missing field `version`",
            ),
            (r#"{"version":1}"#.into(), "missing field `urls`"),
            (object("1", "", ""), "lacks large_download_url"),
            (
                object("1", &URLS.replace("upload", "uplaod"), ""),
                "lacks upload_url",
            ),
            (
                object("1", &URLS.replace("1/u", "2/u"), ""),
                "different hosts",
            ),
            (object("1", &URLS.replace("https", "http"), ""), "not https"),
            (
                object("1", &URLS.replace("https://a.example:1", ""), ""),
                "not https",
            ),
            (
                object("1", &URLS.replace("a.example", "a b"), ""),
                "not a URL",
            ),
            (object("1", URLS, r#","test_endpoint":"b:1""#), "not a host"),
            (object("1", URLS, r#","test_endpoint":"u@b""#), "not a host"),
            ("<html>".into(), "not valid JSON"),
            (String::new(), "not valid JSON"),
            ("[".repeat(100_000), "not valid JSON"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(reason), "{error}: {reason}");
        }
    }

    #[test]
    fn the_client_reads_the_servers_configuration() {
        for name in ["a.example", "[2001:db8::1]:4043", "10.9.2.2:4043"] {
            let authority: Authority = name.parse().unwrap();
            let endpoints = Endpoints::read(&Endpoints::write(&authority)).unwrap();
            assert_eq!(
                endpoints.upload.to_string(),
                format!("https://{name}/upload")
            );
        }
    }

    proptest! {
        #[test]
        fn hostile_configurations_do_not_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            cut in 0..300usize,
            at in 0..300usize,
            byte: u8,
        ) {
            let _ = Endpoints::read(&bytes);
            // A valid object with one byte changed or its end cut off.
            let mut text = format!(r#"{{"version":1,"urls":{{{URLS}}},"test_endpoint":"b"}}"#).into_bytes();
            let length = text.len();
            text[at % length] = byte;
            let _ = Endpoints::read(&text);
            let _ = Endpoints::read(&text[..cut.min(length)]);
        }
    }
}
