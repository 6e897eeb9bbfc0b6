//! The connection to a store: one server or a cluster.

use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{
    AsyncConnectionConfig, Client, ErrorKind, RedisError, RedisResult, Script, ServerErrorKind, TlsCertificates,
};

use super::bucket::SharedKey;
use super::script::{SCRIPT, StoreAnswer, StoreQuestion};
use super::settings::{StoreNodes, StoreSettings};

/// How long connecting may take, TLS and the password included.
const CONNECT: Duration = Duration::from_millis(250);

/// A connection; clones share it, and what they ask is sent without waiting for earlier answers.
#[derive(Clone)]
pub(super) enum StoreConnection {
    One(MultiplexedConnection),
    Cluster(Box<ClusterConnection>),
}

/// Why a question was not answered.
#[derive(Debug)]
pub(super) enum StoreTrouble {
    /// Not in time.
    Late,
    /// Of the connection, or of a server that cannot be used.
    Broken(String),
}

impl StoreConnection {
    pub(super) async fn open(settings: &StoreSettings) -> Result<Self, String> {
        let opening = async {
            let info = settings.info()?;
            let failed = |error| describe(&error);
            let ca = settings.ca.clone().filter(|_| StoreSettings::is_encrypted(&info));
            let certificates = ca.map(|ca| TlsCertificates { client_tls: None, root_cert: Some(ca) });
            match settings.nodes {
                StoreNodes::One => {
                    let client = match certificates {
                        Some(certificates) => Client::build_with_tls(info, certificates),
                        None => Client::open(info),
                    };
                    let config = AsyncConnectionConfig::new()
                        .set_connection_timeout(Some(CONNECT))
                        .set_response_timeout(Some(settings.deadline));
                    let client = client.map_err(failed)?;
                    let connection = client.get_multiplexed_async_connection_with_config(&config).await;
                    connection.map(Self::One).map_err(failed)
                }
                StoreNodes::Cluster => {
                    let builder = ClusterClient::builder([info])
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
        };
        let late = |_| Err(format!("no connection within {} ms", 2 * CONNECT.as_millis()));
        tokio::time::timeout(2 * CONNECT, opening).await.unwrap_or_else(late)
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
            Ok(answer) => {
                let garbage = || StoreTrouble::Broken("an answer that the script does not give".to_owned());
                question.answer(answer).ok_or_else(garbage)
            }
            Err(error) if error.is_timeout() => Err(StoreTrouble::Late),
            Err(error) => Err(StoreTrouble::Broken(describe(&error))),
        }
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

/// An error in one line, and not too long: a server may write what it likes.
fn describe(error: &RedisError) -> String {
    let text: String = error.to_string().chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
