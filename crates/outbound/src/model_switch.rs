//! A model that can be exchanged for another while the program runs.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use planwright_domain::turn::ModelFailure;
use planwright_runtime::ports::model::{Model, ModelAnswer, ModelRequest, OnPreview, Price};

/// A model that can be exchanged. What was asked before is answered by the one that was asked.
pub struct SwitchModel {
    now: RwLock<Arc<dyn Model>>,
}

impl SwitchModel {
    /// This one, at first.
    #[must_use]
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { now: RwLock::new(model) }
    }

    /// Another one, from now on.
    pub fn switch(&self, model: Arc<dyn Model>) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = model;
    }

    fn current(&self) -> Arc<dyn Model> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Model for SwitchModel {
    async fn answer(
        &self,
        request: &ModelRequest,
        preview: OnPreview<'_>,
    ) -> Result<ModelAnswer, ModelFailure> {
        self.current().answer(request, preview).await
    }

    fn window_tokens(&self) -> usize {
        self.current().window_tokens()
    }

    fn soft_tokens(&self) -> usize {
        self.current().soft_tokens()
    }

    fn price(&self) -> Option<Price> {
        self.current().price()
    }

    fn name(&self) -> String {
        self.current().name()
    }

    fn id(&self) -> String {
        self.current().id()
    }
}
