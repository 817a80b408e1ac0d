//! Input: lines and requests of people and foreign agents, up to the one caller of `decide`.

pub mod agents;
pub mod dispatch;
pub mod line;
pub mod routing;
