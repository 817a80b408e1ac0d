//! `planwright models`: which there are and what each does, whether they answer, and which one is asked.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use planwright_outbound::model_http::{HttpModel, HttpSettings, Wire};
use planwright_runtime::ports::{
    connection::{ModelWish, Tried},
    model::{Model, Roles},
};
use serde_json::json;

use crate::{
    args::{Args, ModelsCommand},
    config::{
        Config,
        model::{ModelConfig, RolesConfig},
    },
    connection::{self, ModelChoice, ask},
    data_path::data_path,
    exit::Exit,
    terminal::Terminal,
};

/// The named models that do what the configuration says.
pub fn roles(config: &Config) -> anyhow::Result<Roles> {
    let named = |name: &String| -> anyhow::Result<Arc<dyn Model>> {
        let known = config.models.get(name);
        let known = known.with_context(|| format!("roles: there is no models.{name}"))?;
        let model = HttpModel::new(known.http(name)?);
        Ok(Arc::new(model.map_err(|failure| anyhow::anyhow!(failure.message))?))
    };
    let RolesConfig { plan, execute, summary, fallback } = &config.roles;
    Ok(Roles {
        plan: plan.as_ref().map(named).transpose()?,
        execute: execute.as_ref().map(named).transpose()?,
        summary: summary.as_ref().map(named).transpose()?,
        fallbacks: fallback.iter().map(named).collect::<anyhow::Result<_>>()?,
    })
}

/// A model, what it is called here, and what it does.
struct Known {
    called: String,
    does: Vec<&'static str>,
    settings: HttpSettings,
}

/// `planwright models`.
pub async fn run(
    args: &Args,
    config: &Config,
    command: Option<&ModelsCommand>,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    match command {
        None => {
            for known in all(args, config)? {
                row(terminal, &known, None);
            }
            Ok(Exit::Fine)
        }
        Some(ModelsCommand::Test { name }) => {
            let mut known = all(args, config)?;
            if let Some(name) = name {
                known.retain(|known| known.called == *name || known.settings.model == *name);
                if known.is_empty() {
                    bail!("there is no model {name}; planwright models lists them");
                }
            }
            let mut fine = true;
            for known in known {
                let model = HttpModel::new(known.settings.clone());
                let model = model.map_err(|failure| anyhow::anyhow!(failure.message))?;
                let tried = ask(&model).await;
                fine &= tried.is_ok();
                row(terminal, &known, Some(&tried));
            }
            Ok(if fine { Exit::Fine } else { Exit::Failed })
        }
        Some(ModelsCommand::Set { wire, url, name, key_from, price_in, price_out }) => {
            let known = wire.as_deref().map(|named| {
                Wire::named(named).with_context(|| {
                    let known = Wire::ALL.map(Wire::name).join(", ");
                    format!("there is no wire {named}; there are {known}")
                })
            });
            let home = known.transpose()?.map(|wire| wire.home().to_owned());
            let url = url.clone().or(home).context("say where it is with --url, or set --wire")?;
            let wish = ModelWish {
                wire: wire.clone(),
                url,
                name: name.clone(),
                api_key: args.api_key.clone(),
                key_from: key_from.clone(),
                price_in: *price_in,
                price_out: *price_out,
            };
            // Whoever types this is the operator: they may name any address.
            let choice = ModelChoice { wish, is_public: false };
            let settings = choice.settings().map_err(anyhow::Error::msg)?;
            if let (Some(variable), None) = (key_from, &settings.api_key) {
                bail!(
                    "{variable} holds no key of a known provider; set it, or give the key in PLANWRIGHT_API_KEY"
                );
            }
            let model = HttpModel::new(settings.clone());
            let model = model.map_err(|failure| anyhow::anyhow!(failure.message))?;
            let tried = ask(&model).await;
            let known = Known { called: "conversation".into(), does: vec!["talks"], settings };
            row(terminal, &known, Some(&tried));
            if tried.is_err() {
                bail!("it did not answer, so nothing was changed");
            }
            let data = data_path(args)?;
            std::fs::create_dir_all(&data)?;
            choice.keep(&data)?;
            terminal.line("this is the model of the conversation from the next start on");
            Ok(Exit::Fine)
        }
    }
}

fn all(args: &Args, config: &Config) -> anyhow::Result<Vec<Known>> {
    let chosen = connection::chosen(&data_path(args)?)?;
    let settings = model_settings(args, &config.model, chosen.as_ref())?;
    let does = |name: &String| {
        let RolesConfig { plan, execute, summary, fallback } = &config.roles;
        let is = |role: &Option<String>| role.as_ref() == Some(name);
        [
            (is(plan), "plans"),
            (is(execute), "executes"),
            (is(summary), "sums up"),
            (fallback.contains(name), "stands in"),
        ]
        .into_iter()
        .filter_map(|(does, what)| does.then_some(what))
        .collect()
    };
    let mut all = vec![Known { called: "conversation".into(), does: vec!["talks"], settings }];
    for (name, model) in &config.models {
        let settings = model.http(name)?;
        all.push(Known { called: name.clone(), does: does(name), settings });
    }
    Ok(all)
}

fn row(terminal: &mut Terminal, known: &Known, tried: Option<&Result<Tried, String>>) {
    let Known { called, does, settings } = known;
    let HttpSettings { wire, base_url, model, window_tokens, price, .. } = settings;
    let does_words = if does.is_empty() { "nothing yet".into() } else { does.join(", ") };
    let came = match tried {
        None => String::new(),
        Some(Ok(tried)) => {
            let cost = tried.cost_micros.map_or_else(
                || "price not set".to_owned(),
                |micros| format!("${:.4}", micros as f64 / 1e6),
            );
            format!("  ✓ {:.1} s, {cost}", tried.took_ms as f32 / 1_000.0)
        }
        Some(Err(words)) => format!("  ✗ {words}"),
    };
    terminal.row(
        &format!(
            "{called:<14} {model} · {} · {base_url} · {window_tokens} tokens · {does_words}{came}",
            wire.name()
        ),
        || {
            json!({"type": "model", "called": called, "name": model, "wire": wire.name(),
                "url": base_url, "window_tokens": window_tokens, "does": does,
                "priced": price.is_some(), "answers": tried.map(Result::is_ok),
                "took_ms": tried.and_then(|tried| tried.as_ref().ok()).map(|tried| tried.took_ms),
                "cost_micros": tried.and_then(|tried| tried.as_ref().ok()).and_then(|tried| tried.cost_micros),
                "problem": tried.and_then(|tried| tried.as_ref().err())})
        },
    );
}

/// The model that the arguments name, else the configuration, else the one chosen in the dashboard; by default a
/// local one that wants no key.
pub fn model_settings(
    args: &Args,
    config: &ModelConfig,
    chosen: Option<&ModelChoice>,
) -> anyhow::Result<HttpSettings> {
    // A choice is one thing: an address and the key for it are never taken apart.
    let chosen = chosen.filter(|_| !is_said(args, config)).map(ModelChoice::settings);
    let chosen = chosen.transpose().map_err(|why| {
        anyhow::anyhow!("the model that was chosen cannot be asked: {why}; choose another with planwright models set")
    })?;
    let named = config.wire.map(Wire::from);
    let url = args.model_url.clone().or_else(|| config.url.clone());
    let url = url.or_else(|| chosen.as_ref().map(|chosen| chosen.base_url.clone()));
    let url = url.unwrap_or_else(|| named.unwrap_or_default().home().into());
    let wire = named.or_else(|| chosen.as_ref().map(|chosen| chosen.wire));
    let name = args.model.clone().or_else(|| config.name.clone());
    let name = name.or_else(|| chosen.as_ref().map(|chosen| chosen.model.clone()));
    let plain = HttpSettings::new(
        wire.unwrap_or_else(|| Wire::of(&url)),
        &url,
        &name.unwrap_or_else(|| "qwen3".into()),
    );
    let plain = match chosen {
        Some(HttpSettings { api_key, price, is_public, .. }) => {
            HttpSettings { api_key, price, is_public, ..plain }
        }
        None => plain,
    };
    let set = config.with(plain);
    Ok(HttpSettings {
        api_key: args.api_key.clone().filter(|key| !key.is_empty()).or(set.api_key),
        window_tokens: args.window.unwrap_or(set.window_tokens),
        ..set
    })
}

/// Whether the arguments or the configuration say which model is asked.
pub(crate) fn is_said(args: &Args, config: &ModelConfig) -> bool {
    args.model_url.is_some()
        || args.model.is_some()
        || config.url.is_some()
        || config.wire.is_some()
        || config.name.is_some()
}
