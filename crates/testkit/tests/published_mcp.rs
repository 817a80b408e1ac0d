//! Tools of published MCP servers, over standard streams and over HTTP.
//!
//! They need `npm ci --prefix tools/mcp --ignore-scripts`, as the cluster needs its servers.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use planwright_domain::turn::CallStatus;
use planwright_outbound::toolbox_mcp::{McpServer, McpToolbox, Pins};
use planwright_runtime::ports::toolbox::{Ran, Toolbox as _};
use planwright_testkit::servers::free_port;
use planwright_testkit::tool_run::tool_run;
use serde_json::json;

fn program(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file =
        root.join(format!("tools/mcp/node_modules/@modelcontextprotocol/{name}/dist/index.js"));
    assert!(
        file.exists(),
        "{name} is not installed; run: npm ci --prefix tools/mcp --ignore-scripts"
    );
    file.display().to_string()
}

async fn tools_of(server: McpServer, home: &Path) -> McpToolbox {
    let pins = Arc::new(Pins::open(home.join("pins.json")).unwrap());
    let toolbox = McpToolbox::new("there", server, BTreeMap::new(), pins);
    toolbox.refresh().await;
    assert_eq!(toolbox.trouble(), None);
    toolbox
}

async fn done(toolbox: &McpToolbox, tool: &str, arguments: serde_json::Value) -> String {
    toolbox.check(tool, &arguments.to_string()).unwrap();
    let run = tool_run(tool, arguments);
    match toolbox.run(run).await {
        Ran::Ended(result) if result.status == CallStatus::Done => result.output,
        other @ (Ran::Ended(_) | Ran::Unknown { .. }) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_published_server_writes_a_file() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("files");
    fs::create_dir(&directory).unwrap();
    let own = directory.display().to_string();
    let server = McpServer::Child {
        command: vec!["node".into(), program("server-filesystem"), own.clone()],
        environment: BTreeMap::new(),
        directory: directory.clone(),
        confinement: None,
    };
    let toolbox = tools_of(server, home.path()).await;
    let arguments = json!({"path": format!("{own}/note.txt"), "content": "hello\n"});
    done(&toolbox, "there__write_file", arguments).await;
    assert_eq!(fs::read_to_string(directory.join("note.txt")).unwrap(), "hello\n");
}

#[tokio::test]
async fn a_published_server_is_called_over_streamable_http() {
    let (home, port) = (tempfile::tempdir().unwrap(), free_port());
    let mut child = tokio::process::Command::new("node");
    child
        .args([program("server-everything"), "streamableHttp".into()])
        .env("PORT", port.to_string());
    child.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let _running = child.spawn().unwrap();
    let begun = std::time::Instant::now();
    while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the server does not start");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let url = format!("http://127.0.0.1:{port}/mcp");
    let toolbox = tools_of(McpServer::Http { url, token: None }, home.path()).await;
    let told = done(&toolbox, "there__echo", json!({"message": "good evening"})).await;
    assert!(told.contains("good evening"), "{told}");
}
