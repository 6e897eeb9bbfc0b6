//! What connections to a server are used for.

/// What a connection is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionUse {
    Idle,
    /// It is being made, or has a request.
    Exchange,
    Tunnel,
}

impl ConnectionUse {
    pub(super) const ALL: [Self; 3] = [Self::Idle, Self::Exchange, Self::Tunnel];

    /// As metrics have it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Exchange => "active",
            Self::Tunnel => "tunnel",
        }
    }
}
