//! URLs in rules: a domain, a URL, a leading `*.` in the host or a trailing `*` in the path.

/// A bare domain means https. A pattern without a path covers the whole host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlPattern {
    scheme: Option<String>,
    /// Lower case; with the port where one was given.
    host: String,
    /// `*.example.com`: the hosts below, not the host itself.
    subdomains: bool,
    path: Option<PathRule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathRule {
    Exact(String),
    Prefix(String),
}

impl UrlPattern {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, text),
        };
        let (host, path) = match rest.find('/') {
            Some(slash) => (&rest[..slash], &rest[slash..]),
            None => (rest, ""),
        };
        let (host, subdomains) = match host.strip_prefix("*.") {
            Some(host) => (host, true),
            None => (host, false),
        };
        let odd = |character: char| character == '*' || character == '@' || character.is_whitespace();
        if host.is_empty() || host.contains(odd) || scheme.as_ref().is_some_and(String::is_empty) {
            return None;
        }
        let path = match path {
            "" | "/" => None,
            path => Some(match path.strip_suffix('*') {
                Some(prefix) => PathRule::Prefix(prefix.to_owned()),
                None => PathRule::Exact(path.to_owned()),
            }),
        };
        Some(Self { scheme, host: host.to_ascii_lowercase(), subdomains, path })
    }

    pub(super) fn matches(&self, url: &str) -> bool {
        let Some((scheme, rest)) = url.split_once("://") else { return false };
        if !scheme.eq_ignore_ascii_case(self.scheme.as_deref().unwrap_or("https")) {
            return false;
        }
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        // A name before `@` is user info, not a host.
        let host = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
        let host_matches = if self.subdomains {
            host.strip_suffix(&self.host).is_some_and(|prefix| prefix.ends_with('.') && prefix.len() > 1)
        } else {
            host == self.host
        };
        let path_only = path.split(['?', '#']).next().unwrap_or_default();
        host_matches
            && match &self.path {
                None => true,
                Some(PathRule::Exact(exact)) => path_only == exact,
                // A path with `..` could leave the prefix once the server resolves it.
                Some(PathRule::Prefix(prefix)) => {
                    path_only.starts_with(prefix) && !path_only.split('/').any(|part| part == "..")
                }
            }
    }
}

impl std::fmt::Display for UrlPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(scheme) = &self.scheme {
            write!(f, "{scheme}://")?;
        }
        if self.subdomains {
            f.write_str("*.")?;
        }
        f.write_str(&self.host)?;
        match &self.path {
            None => Ok(()),
            Some(PathRule::Exact(path)) => f.write_str(path),
            Some(PathRule::Prefix(prefix)) => write!(f, "{prefix}*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, url: &str, expected: bool) {
        let pattern = UrlPattern::parse(pattern).unwrap();
        assert_eq!(pattern.matches(url), expected, "{pattern} on {url}");
    }

    #[test]
    fn a_bare_domain_is_https_and_the_whole_host() {
        check("example.com", "https://example.com/a?b", true);
        check("example.com", "https://EXAMPLE.com", true);
        check("example.com", "http://example.com/", false);
        check("example.com", "https://sub.example.com/", false);
        check("example.com", "https://example.com.evil.org/", false);
        check("example.com", "https://example.com@evil.org/", false);
        check("http://localhost:3000", "http://localhost:3000/x", true);
    }

    #[test]
    fn wildcards_stand_only_at_the_ends() {
        check("https://*.x.com", "https://a.x.com/", true);
        check("https://*.x.com", "https://a.b.x.com/", true);
        check("https://*.x.com", "https://x.com/", false);
        check("https://*.x.com", "https://evilx.com/", false);
        check("https://h/p/*", "https://h/p/q", true);
        check("https://h/p/*", "https://h/p/../secret", false);
        check("https://h/p", "https://h/p/q", false);
        assert_eq!(UrlPattern::parse("https://a.*.com"), None);
        assert_eq!(UrlPattern::parse("*"), None);
    }
}
