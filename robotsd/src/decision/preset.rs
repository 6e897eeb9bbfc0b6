//! The proxies whose questions are understood, by name.

/// A proxy whose form of question is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preset {
    Nginx,
    Haproxy,
    Caddy,
    Traefik,
    Envoy,
    IngressNginx,
    Varnish,
    /// It asks in messages and not at a path of the preset.
    EnvoyGrpc,
}

impl Preset {
    /// How many there are.
    pub(super) const COUNT: usize = Self::IN_PATHS.len() + 1;

    /// Those that stand in the path of a question.
    pub(super) const IN_PATHS: [Self; 7] =
        [Self::IngressNginx, Self::Nginx, Self::Haproxy, Self::Caddy, Self::Traefik, Self::Envoy, Self::Varnish];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Caddy => "caddy",
            Self::Traefik => "traefik",
            Self::Envoy => "envoy",
            Self::IngressNginx => "ingress-nginx",
            Self::Varnish => "varnish",
            Self::EnvoyGrpc => "envoy-grpc",
        }
    }

    /// Whether the proxy relays whatever status a refusal has. nginx takes 403 for a refusal and any other status for a failure,
    /// after which the request goes on; it gets the refusal itself from `/-/refusal/`, if it can show one.
    pub(super) const fn relays_status(self) -> bool {
        !matches!(self, Self::Nginx | Self::IngressNginx)
    }

    /// The preset that a text begins with, and where what follows its name begins: nothing, a path or a query.
    pub(super) fn named(text: &str) -> Option<(Self, usize)> {
        Self::IN_PATHS.into_iter().find_map(|preset| {
            let below = text.strip_prefix(preset.as_str())?;
            let at = text.len() - below.len();
            matches!(below.as_bytes().first(), None | Some(b'/' | b'?')).then_some((preset, at))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_stands_alone_in_the_path() {
        assert_eq!(Preset::named("nginx"), Some((Preset::Nginx, 5)));
        assert_eq!(Preset::named("caddy?a=b"), Some((Preset::Caddy, 5)));
        assert_eq!(Preset::named("envoy//x"), Some((Preset::Envoy, 5)));
        for preset in Preset::IN_PATHS {
            assert_eq!(Preset::named(preset.as_str()).map(|(named, _)| named), Some(preset));
        }
        for name in ["", "nginx2", "apache/nginx", "Nginx", "envoy*", "envoy-grpc"] {
            assert_eq!(Preset::named(name), None, "{name}");
        }
    }
}
