//! What Planwright drives, one file or folder per port and technology. No rule lives here.

pub mod access_file;
pub mod broadcast_in_process;
pub mod clock_system;
pub mod data_directory;
pub mod journal_sqlite;
pub mod lane_in_process;
pub mod model_demo;
pub mod model_openai;
pub mod toolbox_files;
