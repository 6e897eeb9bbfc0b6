//! Identifies the client that sent a request, and decides whether the client may send it.
//!
//! The kernel identifies users of the Unix socket, a proxy identifies its users, and a token or a
//! client certificate identifies any other client. The listener's config determines the rights of
//! clients that are not identified. Tokens are accepted only over TLS or on a loopback address,
//! because an unencrypted network would expose them.
//!
//! Every program on the machine can reach a loopback address, including programs of other users and
//! robotsd's own hooks. A change over a loopback address therefore needs a token. If no token is
//! configured, robotsd creates a token and writes it to a file that only robotsd's user and root
//! can read.

use std::borrow::Cow;
use std::time::SystemTime;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderValue, StatusCode};

use super::access_rule::{AccessRule, AddressTerms, SocketPeer, TcpPeer};
use super::reply::AdminReply;
use super::routes::Need;
use crate::config::{AdminAccess, AdminProxy, AdminRights, AdminRole, AdminUser, Grant, LocalToken, UNKNOWN_ID};

#[derive(Clone, Debug)]
pub(super) struct AdminClient {
    pub(super) who: String,
    /// How the client was identified: `socket`, `token`, `certificate` or `proxy`; `address` if it
    /// was not identified.
    pub(super) how: &'static str,
    pub(super) grant: Grant,
}

type Identified = Result<AdminClient, AdminReply>;

impl AccessRule {
    /// Returns the remote address of a request; `None` on a Unix socket.
    pub(super) fn from(&self) -> Option<String> {
        match self {
            Self::Address(peer, _) => Some(peer.remote.to_canonical().to_string()),
            Self::Socket(_) => None,
        }
    }

    /// Returns the value of [`AdminClient::how`] for a client with neither a token nor a
    /// certificate.
    pub(super) fn identification(&self) -> &'static str {
        match self {
            Self::Socket(_) => "socket",
            Self::Address(..) if self.proxy().is_some() => "proxy",
            Self::Address(..) => "address",
        }
    }

    pub(super) fn client(&self, head: &Parts, rights: &AdminRights) -> Identified {
        let client = match (self, self.proxy()) {
            (Self::Socket(peer), _) => peer.client(rights),
            (Self::Address(peer, _), Some(proxy)) => client_by_proxy(proxy, peer, head, rights),
            (Self::Address(peer, terms), None) => client_by_token(peer, terms, head, rights),
        }?;
        if client.grant.has_ended(SystemTime::now()) {
            return Err(refused(&format!(
                "the access of {client} has expired: its \"until\" time in [admin] has passed",
                client = client.who
            )));
        }
        Ok(client)
    }

    /// Refuses an unidentified client if the listener requires a token for changes.
    pub(super) fn require_token(&self, client: &AdminClient, rights: &AdminRights) -> Result<(), AdminReply> {
        match self {
            Self::Address(_, terms)
                if client.how == "address" && terms.config.access(rights) == AdminAccess::TokenForChanges =>
            {
                Err(AdminReply::unauthorized(&match rights.local_token() {
                    Some(LocalToken { file, token: Ok(_) }) => format!(
                        "a change over this address needs the token in {file}: run the command as root or as the \
                         user of robotsd, use the Unix socket, or set ROBOTSD_TOKEN_FILE to the path of a copy of \
                         this file",
                        file = file.display()
                    ),
                    Some(LocalToken { token: Err(why), .. }) => no_local_token(why),
                    None => NEEDS_TOKEN.to_owned(),
                }))
            }
            _ => Ok(()),
        }
    }
}

const NEEDS_TOKEN: &str =
    "the request has no token: send \"Authorization: Bearer rbd_…\"; for commands, set ROBOTSD_TOKEN_FILE";

fn no_local_token(why: &str) -> String {
    format!("a change over this address needs a token, but robotsd has not created one: {why}")
}

impl SocketPeer {
    fn client(self, rights: &AdminRights) -> Identified {
        let grant = match rights.user(&[AdminUser::Uid(self.uid), AdminUser::Group(self.group)]) {
            // If a supervisor created the socket and the config lists no local users, only the mode
            // of the socket file restricts access: everyone who can connect may do everything.
            _ if self.is_owner || self.is_supervisor_socket && !rights.has_local_users() => {
                Some(Grant::everywhere(AdminRole::Admin))
            }
            known => known.cloned(),
        };
        let who = format!("uid {}", self.uid);
        let unknown = || {
            let Self { uid, group, .. } = self;
            if uid == UNKNOWN_ID {
                return refused(&format!(
                    "the kernel reports this user as uid {uid}, which stands for every unknown user: if the systemd \
                     unit of robotsd has PrivateUsers=yes, set PrivateUsers=no, or run the command as the owner of \
                     the socket or as root"
                ));
            }
            refused(&format!(
                "the user with uid {uid} and group {group} may not use this socket: add an [[admin.user]] with this \
                 uid or group, or run the command as the owner of the socket or as root"
            ))
        };
        grant.map(|grant| AdminClient { who, how: "socket", grant }).ok_or_else(unknown)
    }
}

/// Identifies a user by the header field that contains the user's name. Only requests from the
/// proxy's addresses may have this field.
fn client_by_proxy(proxy: &AdminProxy, peer: &TcpPeer, head: &Parts, rights: &AdminRights) -> Identified {
    if !proxy.from.iter().any(|network| network.contains(peer.remote)) {
        let message = format!(
            "{}: only a proxy may use this listener, and \"from\" of the listener does not contain this address",
            peer.remote
        );
        return Err(refused(&message));
    }
    let header = &proxy.user_header;
    let mut names = head.headers.get_all(header).iter();
    let name = match (names.next().and_then(|name| name.to_str().ok()), names.next()) {
        (Some(name), None) if !name.is_empty() => name.to_owned(),
        _ => {
            return Err(AdminReply::unauthorized(&format!(
                "the proxy must send exactly one field {header} with the name of the user"
            )));
        }
    };
    let known = rights.user(&[AdminUser::Named(name.clone())]);
    let unknown = || refused(&format!("no [[admin.user]] has name = {name:?}"));
    let grant = known.cloned().ok_or_else(unknown)?;
    Ok(AdminClient { who: name, how: "proxy", grant })
}

/// Identifies a client by its token. A client without a token has the rights that the `access` of
/// the listener grants to everyone.
fn client_by_token(peer: &TcpPeer, terms: &AddressTerms, head: &Parts, rights: &AdminRights) -> Identified {
    let access = terms.config.access(rights);
    // Some clients always send an `Authorization` field, so the field is ignored if the listener
    // accepts no tokens.
    let accepts_tokens = match access {
        AdminAccess::Token => true,
        AdminAccess::TokenForChanges => !rights.tokens.is_empty() || !head.method.is_safe(),
        AdminAccess::Full | AdminAccess::Read | AdminAccess::Proxy => !rights.tokens.is_empty(),
    };
    let given = head.headers.get(AUTHORIZATION).filter(|_| accepts_tokens).map(hash_of_bearer);
    let Some(hash) = given.filter(|hash| !hash.is_some_and(|hash| rights.ignores(&hash))) else {
        let role = match access {
            AdminAccess::Full => AdminRole::Admin,
            // The listener's `client_ca` has already rejected clients without a valid certificate.
            AdminAccess::TokenForChanges if terms.config.access.is_none() && peer.certificate.is_some() => {
                AdminRole::Admin
            }
            AdminAccess::Read | AdminAccess::TokenForChanges => AdminRole::Read,
            AdminAccess::Token | AdminAccess::Proxy => return Err(AdminReply::unauthorized(NEEDS_TOKEN)),
        };
        let grant = Grant::everywhere(role);
        return Ok(match &peer.certificate {
            Some(name) => AdminClient { who: name.clone(), how: "certificate", grant },
            None => AdminClient { who: "anyone".to_owned(), how: "address", grant },
        });
    };
    if terms.config.certificates.is_none() && !peer.local.to_canonical().is_loopback() {
        return Err(AdminReply::unauthorized(
            "this token was sent without encryption, so others may know it: create a new token, and send it only \
             over TLS or to a loopback address",
        ));
    }
    let unknown = || match rights.local_token() {
        None => AdminReply::unauthorized("the token in the request belongs to no [[admin.token]]"),
        Some(LocalToken { token: Err(why), .. }) => AdminReply::unauthorized(&no_local_token(why)),
        Some(local) => AdminReply::unauthorized(&format!(
            "the token in the request is not the one in {file}: if ROBOTSD_TOKEN or ROBOTSD_TOKEN_FILE is set, correct \
             its value",
            file = local.file.display()
        )),
    };
    let token = hash.and_then(|hash| rights.token(&hash)).ok_or_else(unknown)?;
    let grant = if access == AdminAccess::Read { token.grant.at_most(AdminRole::Read) } else { token.grant.clone() };
    Ok(AdminClient { who: token.name.clone(), how: "token", grant })
}

fn hash_of_bearer(field: &HeaderValue) -> Option<[u8; 32]> {
    let (scheme, token) = field.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| hmac_sha256::Hash::hash(token.trim_ascii()))
}

impl AdminClient {
    pub(super) fn permit(&self, need: Need, site: Option<&str>) -> Result<(), AdminReply> {
        let (role, site) = match need {
            Need::Nothing => return Ok(()),
            Need::Own => (AdminRole::Read, None),
            Need::Process(role) => (role, None),
            Need::All(role) => (role, Some(None)),
            Need::Site(role) => (role, Some(site)),
        };
        let of: Cow<'_, str> = match site {
            Some(Some(site)) => format!(" for site {site:?}").into(),
            Some(None) => " for every site".into(),
            None => "".into(),
        };
        if self.grant.role.includes(role) && site.is_none_or(|site| self.grant.covers(site)) {
            return Ok(());
        }
        let Self { who, grant, .. } = self;
        Err(refused(&format!("this request needs the role {role}{of}, but {who} has {grant}", role = role.as_str())))
    }
}

fn refused(message: &str) -> AdminReply {
    AdminReply::error(StatusCode::FORBIDDEN, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_user_entry_is_suggested_for_an_id_that_all_unknown_users_share() {
        let peer = SocketPeer { uid: UNKNOWN_ID, group: UNKNOWN_ID, is_owner: false, is_supervisor_socket: false };
        let message = peer.client(&AdminRights::default()).unwrap_err().error.unwrap();
        assert!(message.contains("PrivateUsers=no") && !message.contains("[[admin.user]]"), "{message}");
    }

    /// A client connects while the config lists users, and sends a request after a reload has
    /// removed all users from the config.
    #[test]
    fn an_unknown_user_on_the_socket_has_no_role_if_no_users_are_configured() {
        let stranger = SocketPeer { uid: 4001, group: 4001, is_owner: false, is_supervisor_socket: false };
        let role = |peer: SocketPeer| peer.client(&AdminRights::default()).ok().map(|client| client.grant.role);
        assert_eq!(role(stranger), None);
        assert_eq!(role(SocketPeer { is_owner: true, ..stranger }), Some(AdminRole::Admin));
        assert_eq!(role(SocketPeer { is_supervisor_socket: true, ..stranger }), Some(AdminRole::Admin));
    }
}
