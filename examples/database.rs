//! A robots.txt that is stored in the application's database. One admin route publishes a
//! robots.txt, and another accepts a version that the gate holds. After a restart, the accepted
//! version is served.
//!
//!     cargo run --example database --features axum08
//!     curl http://127.0.0.1:3000/robots.txt
//!     curl -T examples/next.txt http://127.0.0.1:3001/robots.txt
//!     printf 'User-agent: *\nDisallow: /\n' | curl -T - http://127.0.0.1:3001/robots.txt
//!     curl -X POST http://127.0.0.1:3001/accept/HASH

use std::path::{Path, PathBuf};
use std::{fs, io};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path as PathArgument, State};
use axum::http::StatusCode;
use axum::routing::{post, put};
use tower_robots::layer::RobotsLayer;
use tower_robots::live::{Gate, LiveRobots, StateDir, VersionHashPrefix};
use tower_robots::policy::Mode;

/// A stand-in for a database table with one row. It contains the published robots.txt, and the hash
/// of the version that an operator has accepted.
#[derive(Clone)]
struct Database(PathBuf);

impl Database {
    fn column(&self, name: &str) -> io::Result<String> {
        match fs::read_to_string(self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read,
        }
    }

    fn save(&self, text: &[u8], accepted: &str) -> io::Result<()> {
        fs::write(self.0.join("text"), text)?;
        fs::write(self.0.join("accepted"), accepted)
    }
}

/// Opens the robots.txt in the row. The gate allows the accepted version because of its hash. On a
/// single machine, a state directory would be enough: it saves the accepted version, the previous
/// version, the history and the kill switch. But only the row is shared by all replicas.
fn open(database: &Database, state: Option<&Path>) -> Result<LiveRobots, Box<dyn std::error::Error>> {
    let (text, accepted) = (database.column("text")?, database.column("accepted")?);
    let text = if text.is_empty() { "User-agent: *\nDisallow: /cart\n".to_owned() } else { text };
    let accepted: Option<VersionHashPrefix> =
        Some(accepted).filter(|hash| !hash.is_empty()).map(|hash| hash.parse()).transpose()?;
    let builder = LiveRobots::text(text).mode(Mode::Refuse).gate(Gate::new().accept(accepted));
    let builder = match state {
        Some(folder) => builder.state(&StateDir::open(folder)?, "shop"),
        None => builder,
    };
    Ok(builder.open()?)
}

fn app(live: &LiveRobots) -> Router {
    Router::new().fallback(async || "a page\n").layer(RobotsLayer::for_axum08(live.clone()))
}

/// Returns the admin routes. Their clients can change what crawlers may read, so the routes have
/// their own listener, on this machine only.
fn admin(live: LiveRobots, database: Database) -> Router {
    Router::new().route("/robots.txt", put(publish)).route("/accept/{hash}", post(accept)).with_state((live, database))
}

type Answer = (StatusCode, String);

async fn publish(State((live, database)): State<(LiveRobots, Database)>, text: Bytes) -> Answer {
    // Publishing compiles and saves the robots.txt, so it must not block a thread that serves
    // requests.
    in_background(move || match live.publish_blocking(&text) {
        Ok(reload) => saved(&database, &text, "", reload.to_string()),
        // If the gate holds the version, the response contains the hash for accepting it.
        Err(rejection) => (StatusCode::CONFLICT, format!("{rejection}\n")),
    })
    .await
}

async fn accept(
    State((live, database)): State<(LiveRobots, Database)>,
    PathArgument(hash): PathArgument<String>,
) -> Answer {
    in_background(move || {
        let hash: VersionHashPrefix = match hash.parse() {
            Ok(hash) => hash,
            Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")),
        };
        match live.accept(&hash) {
            Ok(reload) => {
                let snapshot = live.snapshot();
                let text = snapshot.content.as_ref().map(|content| content.body().clone()).unwrap_or_default();
                saved(&database, &text, &hash.to_string(), reload.to_string())
            }
            Err(error) => (StatusCode::CONFLICT, format!("{error}\n")),
        }
    })
    .await
}

fn saved(database: &Database, text: &[u8], accepted: &str, said: String) -> Answer {
    match database.save(text, accepted) {
        Ok(()) => (StatusCode::OK, format!("{said}\n")),
        Err(error) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{said}, and the database has not got it: {error}\n"))
        }
    }
}

async fn in_background(work: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| (StatusCode::INTERNAL_SERVER_ERROR, format!("{panic}\n")))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join("robots-database");
    fs::create_dir_all(&folder)?;
    let database = Database(folder.clone());
    let live = open(&database, Some(&folder.join("state")))?;
    let public = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    let local = tokio::net::TcpListener::bind("127.0.0.1:3001").await?;
    let (app, admin) = (app(&live), admin(live, database));
    tokio::try_join!(axum::serve(public, app).into_future(), axum::serve(local, admin).into_future())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;

    const CLOSED: &str = "User-agent: *\nDisallow: /\n";

    async fn send(router: Router, method: &str, path: &str, body: &'static str) -> Answer {
        let request = Request::builder().method(method).uri(path).header("user-agent", "GPTBot/1.2");
        let response = router.oneshot(request.body(Body::from(body)).expect("a request")).await.expect("infallible");
        let status = response.status();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        (status, String::from_utf8(body.to_vec()).expect("text"))
    }

    /// An accepted version is still accepted after a restart if the row contains its hash, or if
    /// there is a state directory. Otherwise it is not.
    #[tokio::test]
    async fn an_accepted_version_survives_a_restart_with_its_hash_in_the_row_or_a_state_directory() {
        for with_state in [false, true] {
            let folder = tempfile::tempdir().expect("a folder");
            let (database, state) = (Database(folder.path().to_owned()), folder.path().join("state"));
            let state = with_state.then_some(&*state);
            let live = open(&database, state).expect("the first text");
            let admin = admin(live.clone(), database.clone());
            let (status, said) = send(admin.clone(), "PUT", "/robots.txt", CLOSED).await;
            assert_eq!(status, StatusCode::CONFLICT, "{said}");
            let hash = said.split("version ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a hash");
            assert_eq!(hash.len(), 16, "{said}");
            let (status, said) = send(admin, "POST", &format!("/accept/{hash}"), "").await;
            assert!(status == StatusCode::OK && said.contains(&format!("version {hash} is live")), "{said}");
            drop(live);

            let live = open(&database, state).expect("what was accepted");
            assert_eq!(send(app(&live), "GET", "/page", "").await.0, StatusCode::FORBIDDEN);
            drop(live);
            // The row does not contain the hash, but the state directory does.
            database.save(CLOSED.as_bytes(), "").expect("saved");
            match (open(&database, state), with_state) {
                (Ok(_), true) => {}
                (Err(error), false) => {
                    let error = error.to_string();
                    let names = ["StateDir", &format!("a gate that accepts \"{hash}\" (Gate::accept)")];
                    assert!(names.iter().all(|name| error.contains(name)), "{error}");
                }
                (opened, _) => panic!("{with_state}: {opened:?}"),
            }
        }
    }
}
