//! Tests of the layer. The inner service responds with fields of the request that it received.

mod agents;
mod callbacks;
mod crawlers;
mod modes;
mod rate;
mod refusals;
mod requests;
mod robots_txt;
mod senders;
mod service;
mod signals;
#[cfg(feature = "verify")]
mod signed;
mod tags;
#[cfg(feature = "verify")]
mod verify;

use crate::live::Mutex;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use tower::{Layer, Service, ServiceExt, service_fn};

use super::answer::{Answer, Outcome};
use super::original::OriginalRequest;
use super::service::ResponseBody;
#[cfg(feature = "verify")]
use super::verify::VerifyLayer;
use super::*;
use crate::agent::{Identity, Refutation};
use crate::live::{Enforcement, LiveRobots, WhenMissing};
use crate::policy::{Action, Mode, Policy, PolicyBuilder, Reason};
use crate::rules::PathForm;
use crate::source::{HostMap, IntoSites};

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
const GPTBOT: &str =
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)";
const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const FILE: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";
const REFUTED: Identity = Identity::Refuted(Refutation::NotListed);

type Body = Full<Bytes>;

fn live(mode: Mode) -> LiveRobots {
    live_by(FILE, Policy::builder().mode(mode))
}

fn live_by(file: &str, policy: PolicyBuilder) -> LiveRobots {
    LiveRobots::text(file).policy(policy.build()).open().expect("a robots.txt")
}

fn refusing_by(file: &str) -> RobotsLayer {
    RobotsLayer::new(live_by(file, Policy::builder().mode(Mode::Refuse)))
}

/// Responds with 200, and copies the fields that reached the service into the response.
async fn app(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let mut response = Response::new(Full::from("app"));
    for name in ["robots-verdict", "robots_verdict", "connection"] {
        for value in request.headers().get_all(name) {
            response
                .headers_mut()
                .append(http::HeaderName::try_from(format!("saw-{name}")).expect("a name"), value.clone());
        }
    }
    if let Some(record) = request.extensions().get::<Record>() {
        response.extensions_mut().insert(record.clone());
    }
    Ok(response)
}

async fn ask(layer: RobotsLayer, request: Request<Body>) -> Response<ResponseBody<Body>> {
    layer.layer(service_fn(app)).oneshot(request).await.expect("infallible")
}

fn get(target: &str, agent: &str) -> Request<Body> {
    Request::get(target).header("user-agent", agent).body(Body::default()).expect("a request")
}

async fn text(response: Response<ResponseBody<Body>>) -> String {
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    String::from_utf8(body.to_vec()).expect("text")
}

fn field<'a, B>(response: &'a Response<B>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().expect("ASCII"))
}

/// Returns two references to the same value: one for the test, and one for the callback that
/// records its calls in the value.
fn noting<T>(nothing: T) -> (Arc<Mutex<T>>, Arc<Mutex<T>>) {
    let noted = Arc::new(Mutex::new(nothing));
    (noted.clone(), noted)
}

/// Returns the request with an additional field.
fn with(mut request: Request<Body>, name: &str, value: impl AsRef<str>) -> Request<Body> {
    add(&mut request, name, value);
    request
}

fn add(request: &mut Request<Body>, name: &str, value: impl AsRef<str>) {
    let name = http::HeaderName::try_from(name).expect("a name");
    request.headers_mut().append(name, value.as_ref().parse().expect("a value"));
}
