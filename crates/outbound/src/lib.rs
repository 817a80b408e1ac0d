//! What Planwright drives, one file or folder per port and technology. No rule lives here.

pub mod access_file;
#[cfg(feature = "cluster")]
pub mod access_postgres;
mod advancing;
pub mod broadcast_in_process;
#[cfg(feature = "cluster")]
pub mod broadcast_nats;
pub mod clock_system;
#[cfg(feature = "cluster")]
pub mod cluster_postgres;
pub mod data_directory;
pub mod database_address;
mod durable_file;
mod egress;
pub mod head_keeper;
pub mod ids_random;
mod journal;
#[cfg(feature = "cluster")]
pub mod journal_postgres;
pub mod journal_sqlite;
pub mod lane_in_process;
#[cfg(feature = "cluster")]
pub mod lane_restate;
mod local_subscribers;
pub mod model_demo;
pub mod model_http;
pub mod model_switch;
pub mod notebook_object_store;
pub mod passphrase;
#[cfg(feature = "cluster")]
mod postgres;
mod shutdown;
pub mod signing_key;
pub mod statement_count;
#[cfg(target_os = "linux")]
pub mod toolbox_command;
pub mod toolbox_files;
pub mod toolbox_mcp;
pub mod toolbox_union;
pub mod toolbox_web;
