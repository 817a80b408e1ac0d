//! Several toolboxes as one. The first that has a tool of a name makes its calls.

use std::sync::Arc;

use async_trait::async_trait;
use planwright_domain::{effect::Aim, identity::Root};
use planwright_runtime::ports::toolbox::{Ran, Tool, ToolRun, Toolbox};

/// Several toolboxes as one.
pub struct ToolboxUnion {
    boxes: Vec<Arc<dyn Toolbox>>,
}

impl ToolboxUnion {
    /// These, in this order.
    #[must_use]
    pub fn of(boxes: Vec<Arc<dyn Toolbox>>) -> Self {
        Self { boxes }
    }

    fn having(&self, tool: &str) -> Option<&Arc<dyn Toolbox>> {
        self.boxes.iter().find(|toolbox| toolbox.tools().iter().any(|has| has.spec.name == tool))
    }
}

#[async_trait]
impl Toolbox for ToolboxUnion {
    fn tools(&self) -> Arc<Vec<Tool>> {
        if let [only] = self.boxes.as_slice() {
            return only.tools();
        }
        let mut all: Vec<Tool> = Vec::new();
        for tool in self.boxes.iter().flat_map(|toolbox| toolbox.tools().to_vec()) {
            if !all.iter().any(|has| has.spec.name == tool.spec.name) {
                all.push(tool);
            }
        }
        Arc::new(all)
    }

    fn aim(&self, root: Option<&Root>, tool: &str, arguments: &str) -> Aim {
        self.having(tool).map_or_else(Aim::default, |toolbox| toolbox.aim(root, tool, arguments))
    }

    fn check(&self, tool: &str, arguments: &str) -> Result<(), String> {
        let there = self.having(tool).ok_or_else(|| format!("there is no tool {tool:?}"))?;
        there.check(tool, arguments)
    }

    async fn refresh(&self) {
        futures_util::future::join_all(self.boxes.iter().map(|toolbox| toolbox.refresh())).await;
    }

    async fn run(&self, run: ToolRun) -> Ran {
        match self.having(&run.tool) {
            Some(toolbox) => toolbox.run(run).await,
            None => Ran::Unknown { why: format!("there is no tool {:?} any more", run.tool) },
        }
    }
}
