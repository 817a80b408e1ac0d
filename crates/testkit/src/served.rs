//! A house behind HTTP, in this process, with a client that knows its way.

use std::sync::Arc;

use planwright_domain::{
    actor::{OWNER, PersonId, Standing},
    digest::Digest,
    identity::ChannelType,
    installation::{Requester, Role},
};
use planwright_outbound::{access_file::FileAccess, clock_system::SystemClock};
use planwright_runtime::{
    commands::{
        accounts::{Accounts, Link},
        grants::Wanted,
    },
    ports::Clock as _,
};
use planwright_surfaces::http::{App, HttpSettings, auth::page::PAGE_KEY, serve};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};
use uuid::Uuid;

use crate::{house::House, scratch, scripted_model::Conduct};

/// The passphrase of every served house.
pub const PASSPHRASE: &str = "correct horse battery";

/// A browser that logged in.
pub struct Browser {
    /// The cookie as it was set.
    pub cookie: String,
    /// The cookie as it is sent.
    pub pair: String,
    /// The key of its page.
    pub page_key: String,
}

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
    accounts: Accounts,
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
        Self::of(House::local(conduct).await, set).await
    }

    /// This house behind HTTP.
    pub async fn of(house: House, set: impl FnOnce(HttpSettings) -> HttpSettings) -> Self {
        let home = scratch::directory("served").expect("a directory");
        let access = Arc::new(FileAccess::open(home.path()).expect("access"));
        let accounts = house.runtime.commands.accounts(access.clone());
        accounts.choose_first(&PersonId(OWNER.into()), PASSPHRASE).await.expect("a passphrase");
        let (token, decider) =
            ("speaks-0123456789abcdef0123456789abcdef", "decides-0123456789abcdef0123456789abcdef");
        for (secret, standing) in [(token, Standing::Speaks), (decider, Standing::Decides)] {
            give(&accounts, secret, OWNER, standing).await;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let app = Arc::new(App::new(
            house.runtime.commands.clone(),
            house.runtime.queries.clone(),
            access.clone(),
            set(HttpSettings::loopback(port)),
        ));
        let serving = tokio::spawn(async move {
            serve(listener, app, std::future::pending()).await;
        });
        Self {
            house,
            url: format!("http://127.0.0.1:{port}"),
            token: token.into(),
            decider: decider.into(),
            accounts,
            client: Client::new(),
            serving,
            _access: home,
        }
    }

    /// A token of this person, whose account is made if there is none.
    pub async fn token_of(&self, person: &str, standing: Standing) -> String {
        self.introduce(person).await;
        let secret = format!("{person}-{}", Uuid::now_v7().simple());
        give(&self.accounts, &secret, person, standing).await;
        secret
    }

    /// An account of this name that may decide and has the passphrase of the house.
    pub async fn account_of(&self, person: &str) {
        let link = self.introduce(person).await.expect("a link");
        self.accounts.accept(&link.secret, PASSPHRASE).await.expect("a passphrase");
    }

    /// An account of this name that may decide, if there is none; the link that its person is given.
    async fn introduce(&self, person: &str) -> Option<Link> {
        let (by, person) = (PersonId(OWNER.into()), PersonId(person.into()));
        let by = Requester { person: by, age_micros: Some(0), age_micros_max: 1 };
        self.accounts.add(by, person, [Role::Decide].into()).await.ok()
    }

    /// The accounts of the house.
    #[must_use]
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Takes a token back.
    pub async fn take_back(&self, secret: &str) {
        let secret = Digest::of(secret.as_bytes());
        if let Some(bearer) = self.accounts.bearer(secret).await.expect("access") {
            self.accounts.revoke(bearer.id, bearer.id).await.expect("taken back");
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

    /// Where its pages lie.
    #[must_use]
    pub fn pages(&self) -> String {
        self.url.replacen("127.0.0.1", "localhost", 1)
    }

    /// A browser logs in with this.
    pub async fn log_in(&self, with: Value) -> Browser {
        let login = self.bare(Method::POST, "/api/login").json(&with);
        let response = login.send().await.expect("an answer");
        let cookie = response.headers()["set-cookie"].to_str().expect("a cookie").to_owned();
        let (_, told) = body(response).await;
        let pair = cookie.split(';').next().expect("a pair").to_owned();
        let page_key = told["pageKey"].as_str().expect("a page key").to_owned();
        Browser { cookie, pair, page_key }
    }

    /// A request by the page of a browser that logged in.
    pub fn page(&self, browser: &Browser, method: Method, path: &str) -> RequestBuilder {
        let request = self.bare(method, path).header("cookie", &browser.pair);
        request.header(PAGE_KEY, &browser.page_key)
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

async fn give(accounts: &Accounts, secret: &str, person: &str, standing: Standing) {
    let version = accounts.installation().await.expect("the installation").version;
    let person = PersonId(person.into());
    let wanted = Wanted {
        authenticated: (standing == Standing::Decides).then(|| (SystemClock.now(), version)),
        ..Wanted::new(secret, person, standing, ChannelType::Api)
    };
    accounts.give_for(wanted, secret).await.expect("a grant");
}

/// The status and the body of an answer.
pub async fn response_to(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.expect("an answer");
    body(response).await
}

/// The status and the body of an answer that has come.
pub async fn body(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.expect("a body");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
