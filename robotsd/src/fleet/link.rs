//! A connection to the store of a fleet. Each task has its own connection, so a slow response
//! delays only one task.

use std::sync::Arc;

use redis::{FromRedisValue, RedisError, RedisResult, cmd};

use crate::store::{StoreAddresses, StoreConnection, StoreProblem, StoreScript, StoreSettings, system_lookup};

pub(super) struct StoreLink {
    settings: StoreSettings,
    addresses: StoreAddresses,
    /// The open connection; `None` before the first command and after a failed command.
    connection: Option<StoreConnection>,
}

pub(super) enum LinkError {
    /// Any error except `WrongType`. Contains the message for the operator.
    Failed(String),
    /// The key has a value of the wrong type. Contains the store's error message.
    WrongType(String),
}

impl LinkError {
    pub(super) fn text(self) -> String {
        match self {
            Self::Failed(why) | Self::WrongType(why) => why,
        }
    }
}

impl StoreLink {
    pub(super) fn new(settings: &StoreSettings) -> Self {
        let addresses = StoreAddresses::new(Arc::new(system_lookup));
        Self { settings: settings.clone(), addresses, connection: None }
    }

    /// Returns the full name of a key in the store: the fleet's prefix, followed by `of`.
    pub(super) fn key(&self, of: &str) -> String {
        format!("{}{of}", self.settings.prefix)
    }

    pub(super) async fn read<T: FromRedisValue>(&mut self, key: &str, command: &redis::Cmd) -> Result<T, LinkError> {
        let answer = self.ask(async |connection| connection.query(command).await).await.map_err(LinkError::Failed)?;
        answer.map_err(|error| self.failed(&error, "read", key))
    }

    pub(super) async fn write<T: FromRedisValue>(&mut self, key: &str, command: &redis::Cmd) -> Result<T, String> {
        let answer = self.ask(async |connection| connection.query(command).await).await?;
        answer.map_err(|error| self.failed(&error, "write", key).text())
    }

    pub(super) async fn run<T: FromRedisValue>(
        &mut self,
        script: &StoreScript,
        key: &str,
        arguments: &[Vec<u8>],
    ) -> Result<T, String> {
        let answer = self.ask(async |connection| connection.run(script, key, arguments).await).await?;
        answer.map_err(|error| self.failed(&error, "write", key).text())
    }

    /// Sends one or more commands. If the store has closed the connection, for example because it
    /// was idle, connects again and repeats the commands. Repeating is safe, because a repeated
    /// write has no effect.
    pub(super) async fn ask<T>(
        &mut self,
        question: impl AsyncFn(&mut StoreConnection) -> RedisResult<T>,
    ) -> Result<RedisResult<T>, String> {
        let was_open = self.connection.is_some();
        let answer = question(self.connected().await?).await;
        if !was_open || !answer.as_ref().is_err_and(RedisError::is_connection_dropped) {
            return Ok(answer);
        }
        self.connection = None;
        Ok(question(self.connected().await?).await)
    }

    /// Returns the open connection, or opens a connection.
    pub(super) async fn connected(&mut self) -> Result<&mut StoreConnection, String> {
        if self.connection.is_none() {
            let key = self.key("doc");
            let probe = move |mut connection: StoreConnection| {
                let mut command = cmd("HMGET");
                command.arg(&key).arg("epoch").arg("tag");
                async move {
                    // If the command times out, the client tries the next address. All other errors
                    // are ignored, because the next command will report them.
                    match connection.query::<redis::Value>(&command).await {
                        Err(error) if error.is_timeout() => Err("the store did not answer in time".to_owned()),
                        _ => Ok(()),
                    }
                }
            };
            let connection = StoreConnection::connect(&self.settings, &mut self.addresses, probe).await;
            self.connection = Some(connection.map_err(|why| format!("{}: {why}", self.settings.place()))?);
        }
        self.connection.as_mut().ok_or_else(|| "no connection".to_owned())
    }

    /// Describes why a command failed. Unless the store reported a wrong type or a missing
    /// permission, also drops the connection, so that the next command connects again.
    pub(super) fn failed(&mut self, error: &RedisError, what: &str, key: &str) -> LinkError {
        let store = &self.settings;
        let text = error.to_string();
        if text.contains("WRONGTYPE") {
            return LinkError::WrongType(text);
        }
        if ["NOPERM", "NoPerm", "ACL failure"].iter().any(|mark| text.contains(mark)) {
            return LinkError::Failed(format!(
                "{store}: the user of the store may not {what} {key}: allow this user EVAL, EVALSHA, TIME, HGET, \
                 HMGET, HGETALL, HEXISTS, HSET, HSETNX, HDEL, SET, GET and DEL for keys that begin with {prefix}, and \
                 in a cluster also CLUSTER SLOTS and PING ({text})",
                store = store.place(),
                prefix = store.prefix
            ));
        }
        self.connection = None;
        LinkError::Failed(format!("{}: {}", store.place(), StoreProblem::of(error, store).message(store)))
    }
}
