//! Reads: views, timelines, activity, logs. Nothing here changes a session.

pub mod activity;
pub mod audit;
pub mod autonomy;
pub mod model_request_log;
pub mod reader;
pub mod timeline;
pub mod view;
pub mod waiting;
