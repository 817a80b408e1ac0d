//! The log, on standard error: what went wrong, or what `PLANWRIGHT_LOG` asks for.

use std::{fmt, sync::OnceLock};

use tracing::{Event, Subscriber};
use tracing_subscriber::{
    EnvFilter,
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{Format, Json, JsonFields, Writer},
    },
    registry::LookupSpan,
};

use crate::args::{Args, Command};

/// What this node is called, once it is one.
static NODE: OnceLock<String> = OnceLock::new();

/// From now on every line of JSON says that it is from this node.
pub fn known_as(node: &str) {
    let _ = NODE.set(node.to_owned());
}

/// Begins to log. A server logs JSON.
pub fn begin(args: &Args) {
    let is_server = matches!(args.command, Command::Up | Command::Node { .. });
    // Each call of an agent is a connection of its own to the library, which says so.
    let usual = if is_server { "info,rmcp=error" } else { "error" };
    let filter =
        EnvFilter::try_from_env("PLANWRIGHT_LOG").unwrap_or_else(|_| EnvFilter::new(usual));
    let logging = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // To say on standard error that standard error is gone would panic.
    let logging = logging.log_internal_errors(false);
    let _ = if args.json || is_server {
        let lines = NodeLines(Format::default().json().flatten_event(true));
        logging.fmt_fields(JsonFields::new()).event_format(lines).try_init()
    } else {
        logging.try_init()
    };
}

/// Lines of JSON that begin with the node's name.
struct NodeLines(Format<Json>);

impl<S, N> FormatEvent<S, N> for NodeLines
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some(node) = NODE.get() else { return self.0.format_event(context, writer, event) };
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        let fields = line.strip_prefix('{').unwrap_or(&line);
        write!(writer, "{{\"node\":{},{fields}", serde_json::Value::from(node.as_str()))
    }
}
