//! A house behind HTTP, in this process, with a client that knows its way.

use std::sync::Arc;

use planwright_domain::{
    actor::{PersonId, Standing},
    digest::Digest,
    time::Time,
};
use planwright_outbound::access_file::FileAccess;
use planwright_runtime::ports::access::{Access as _, Grant};
use planwright_surfaces::http::{App, HttpSettings, serve};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};
use uuid::Uuid;

use crate::{house::House, scripted_model::Conduct};

/// The passphrase of every served house.
pub const PASSPHRASE: &str = "correct horse battery";

/// A house behind HTTP.
pub struct Served {
    /// The house.
    pub house: House,
    /// Its address.
    pub url: String,
    /// A token that may speak.
    pub token: String,
    /// A token that may decide.
    pub decider: String,
    client: Client,
    serving: JoinHandle<()>,
    _access: tempfile::TempDir,
}

impl Served {
    /// A house with a model that behaves so, behind HTTP.
    pub async fn start(conduct: Conduct) -> Self {
        Self::with(conduct, |settings| settings).await
    }

    /// The same, with other settings.
    pub async fn with(conduct: Conduct, set: impl FnOnce(HttpSettings) -> HttpSettings) -> Self {
        let house = House::local(conduct).await;
        let home = tempfile::tempdir().expect("a directory");
        let access = Arc::new(FileAccess::open(home.path()).expect("access"));
        access.choose_passphrase(PASSPHRASE).expect("a passphrase");
        let (token, decider) =
            ("speaks-0123456789abcdef0123456789abcdef", "decides-0123456789abcdef0123456789abcdef");
        for (secret, standing) in [(token, Standing::Speaks), (decider, Standing::Decides)] {
            let grant = Grant {
                id: Uuid::now_v7(),
                name: secret.into(),
                person: PersonId("owner".into()),
                standing,
                created: Time(1),
                expires: None,
            };
            access.keep(grant, Digest::of(secret.as_bytes())).await.expect("a grant");
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let app =
            Arc::new(App::new(house.runtime.clone(), access, set(HttpSettings::loopback(port))));
        let serving = tokio::spawn(async move {
            let _ = serve(listener, app, std::future::pending()).await;
        });
        Self {
            house,
            url: format!("http://127.0.0.1:{port}"),
            token: token.into(),
            decider: decider.into(),
            client: Client::new(),
            serving,
            _access: home,
        }
    }

    /// A request by someone who may only speak.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).bearer_auth(&self.token)
    }

    /// A request by someone who may decide.
    pub fn decide(&self, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).bearer_auth(&self.decider)
    }

    /// A request by nobody.
    pub fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The status and the body of an answer.
pub async fn told(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.expect("an answer");
    body(response).await
}

/// The status and the body of an answer that has come.
pub async fn body(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.expect("a body");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
