//! The connection to a store: one server or a cluster.

use std::net::SocketAddr;
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, RedisResult, Script, ServerErrorKind, TlsCertificates,
};
use tokio::time::timeout;

use super::addresses::OneAddress;
use super::bucket::SharedKey;
use super::script::{SCRIPT, StoreAnswer, StoreQuestion};
use super::settings::{StoreNodes, StoreSettings};
use super::trouble::{StoreTrouble, describe};

/// How long connecting may take, TLS and the password included.
const CONNECT: Duration = Duration::from_millis(250);

/// A connection; clones share it, and what they ask is sent without waiting for earlier answers.
#[derive(Clone)]
pub(super) enum StoreConnection {
    One(MultiplexedConnection),
    Cluster(Box<ClusterConnection>),
}

impl StoreConnection {
    /// Connects to one of the addresses of the store.
    pub(super) async fn open(settings: &StoreSettings, address: SocketAddr) -> Result<Self, String> {
        let late = |_| Err(format!("no connection within {} ms", 2 * CONNECT.as_millis()));
        timeout(2 * CONNECT, Self::opening(settings, address)).await.unwrap_or_else(late)
    }

    async fn opening(settings: &StoreSettings, address: SocketAddr) -> Result<Self, String> {
        let info = settings.info()?;
        let failed = |error| describe(&error, settings);
        let ca = settings.ca.clone().filter(|_| StoreSettings::is_encrypted(&info));
        let certificates = ca.map(|ca| TlsCertificates { client_tls: None, root_cert: Some(ca) });
        // The name is what a certificate is for; the address is only where it is connected to.
        let (host, _) = host(info.addr());
        let resolver = OneAddress { host: host.to_owned(), address };
        match settings.nodes {
            StoreNodes::One => {
                let client = match certificates {
                    Some(certificates) => Client::build_with_tls(info, certificates),
                    None => Client::open(info),
                };
                let config = AsyncConnectionConfig::new()
                    .set_dns_resolver(resolver)
                    .set_connection_timeout(Some(CONNECT))
                    .set_response_timeout(Some(settings.deadline));
                let client = client.map_err(failed)?;
                let connection = client.get_multiplexed_async_connection_with_config(&config).await;
                connection.map(Self::One).map_err(failed)
            }
            StoreNodes::Cluster => {
                let builder = ClusterClient::builder([info])
                    .async_dns_resolver(resolver)
                    .connection_timeout(CONNECT)
                    .response_timeout(settings.deadline)
                    // What waited is answered by the process's own bucket.
                    .retries(1);
                let builder = match certificates {
                    Some(certificates) => builder.certs(certificates),
                    None => builder,
                };
                let client = builder.build().map_err(failed)?;
                let connection = client.get_async_connection().await.map_err(failed)?;
                Ok(Self::Cluster(Box::new(connection)))
            }
        }
    }

    /// Whether it finds its way to nodes that come back, so that no other connection is needed.
    pub(super) const fn mends_itself(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Asks the store, which has the script or gets it.
    pub(super) async fn ask(
        &mut self,
        script: &Script,
        settings: &StoreSettings,
        key: SharedKey,
        question: StoreQuestion,
    ) -> Result<StoreAnswer, StoreTrouble> {
        let name = key.name(&settings.prefix);
        let answered = match self {
            Self::One(connection) => run(connection, script, &name, question).await,
            Self::Cluster(connection) => run(&mut **connection, script, &name, question).await,
        };
        match answered {
            Ok(answer) => question.answer(answer).ok_or_else(StoreTrouble::garbage),
            Err(error) => Err(StoreTrouble::of(&error, settings)),
        }
    }
}

/// Host and port of a store.
pub(super) fn host(address: &ConnectionAddr) -> (&str, u16) {
    match address {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => (host, *port),
        // No URL that is accepted names another kind.
        _ => ("", 0),
    }
}

async fn run(
    connection: &mut impl ConnectionLike,
    script: &Script,
    name: &str,
    question: StoreQuestion,
) -> RedisResult<(i64, i64)> {
    let arguments = question.arguments();
    let command = |command: &str, script: &str| {
        let mut command = redis::cmd(command);
        command.arg(script).arg(1).arg(name);
        for argument in &arguments {
            command.arg(argument);
        }
        command
    };
    match command("EVALSHA", script.get_hash()).query_async(connection).await {
        // A server that was restarted, or has forgotten its scripts. Evaluating it makes it known.
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            command("EVAL", SCRIPT).query_async(connection).await
        }
        outcome => outcome,
    }
}
