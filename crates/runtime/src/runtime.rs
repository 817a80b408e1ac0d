//! The runtime, wired: commands, queries and the engine, each over the ports that it needs.

use std::sync::Arc;

use crate::{
    commands::Commands, engine::Engine, engine::attempt::Attempts, housekeeping::Housekeeping,
    model_health::ModelHealth, ports::Ports, queries::Queries, settings::Settings,
};

/// One life of one process: what is given to surfaces, and what is given to a lane.
#[derive(Clone)]
pub struct Runtime {
    /// What changes something. For surfaces.
    pub commands: Arc<Commands>,
    /// What reads. For surfaces.
    pub queries: Arc<Queries>,
    /// What acts. For lanes.
    pub engine: Arc<Engine>,
    /// What is done at intervals. For whoever runs the process.
    pub housekeeping: Arc<Housekeeping>,
}

impl Runtime {
    /// A new life of this process.
    #[must_use]
    pub fn new(ports: &Ports, settings: &Settings) -> Self {
        let attempts = Attempts::default();
        let model_health = ModelHealth::default();
        let queries = Arc::new(Queries::new(ports, settings, model_health.clone()));
        let commands = Arc::new(Commands::new(ports, settings, queries.clone(), attempts.clone()));
        let engine = Arc::new(Engine::new(ports, settings, attempts, model_health));
        let housekeeping = Arc::new(Housekeeping::new(ports, settings));
        Self { commands, queries, engine, housekeeping }
    }
}
