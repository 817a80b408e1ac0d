//! The working draft of a plan in `collect` and `build`, and the Markdown that a revision of it has.
//!
//! The Markdown is rendered by one pure function, so that the reader always reads Markdown and always
//! the same for the same steps. Arguments stand in it byte for byte.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::plan::step::{PlanStep, StepWork};

/// What is being written beside the revisions of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Draft {
    /// What `build` says besides its steps.
    pub brief: Brief,
    /// The steps, in order.
    pub steps: Vec<PlanStep>,
}

/// What a `build` plan says besides its steps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Brief {
    /// What the plan is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is taken for granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    /// What may go wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// How one sees that it worked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verification: Vec<String>,
    /// The files it concerns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

impl Brief {
    /// The parts that are lists, with their names as published.
    #[must_use]
    pub fn lists(&self) -> [(&'static str, &[String]); 4] {
        [
            ("assumptions", &self.assumptions),
            ("risks", &self.risks),
            ("verification", &self.verification),
            ("files", &self.files),
        ]
    }
}

impl Draft {
    /// The number that the next step gets: one that no step has had before in it.
    #[must_use]
    pub fn next_number(&self, used: u32) -> u32 {
        let highest = self.steps.iter().map(|step| step.number).max().unwrap_or_default();
        highest.max(used) + 1
    }

    /// Everything that is missing before it can be submitted, in words.
    #[must_use]
    pub fn gaps(&self, profiles: &BTreeSet<String>) -> Vec<String> {
        let mut gaps = Vec::new();
        if self.brief.goal.is_none() {
            gaps.push("the goal is missing (plan_create)".into());
        }
        if self.steps.is_empty() {
            gaps.push("there is no step (plan_add_step)".into());
        }
        let missing = self.brief.lists().into_iter().filter(|(_, entries)| entries.is_empty());
        gaps.extend(missing.map(|(name, _)| format!("{name} are missing (plan_set_metadata)")));
        for step in &self.steps {
            if let StepWork::Task { profile, .. } = &step.work
                && !profiles.contains(profile)
            {
                gaps.push(format!("step {} names an unknown profile {profile:?}", step.number));
            }
        }
        gaps
    }

    /// The title that a revision of it has.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.brief.title.as_deref().or(self.brief.goal.as_deref())
    }

    /// A `build` plan as Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n", self.title().unwrap_or("Plan"));
        if let Some(goal) = &self.brief.goal {
            text.push_str(&format!("\n**Goal.** {goal}\n"));
        }
        for step in &self.steps {
            text.push_str(&step_markdown(step));
        }
        for (name, entries) in self.brief.lists() {
            if !entries.is_empty() {
                let name = name[..1].to_uppercase() + &name[1..];
                text.push_str(&format!("\n## {name}\n\n"));
                entries.iter().for_each(|entry| text.push_str(&format!("- {entry}\n")));
            }
        }
        text
    }
}

/// A `collect` plan as Markdown: its summary, and every call as it will be made.
#[must_use]
pub fn collected(title: &str, summary: &str, steps: &[PlanStep]) -> String {
    let mut text = format!("# {title}\n");
    if !summary.is_empty() && summary != title {
        text.push_str(&format!("\n{summary}\n"));
    }
    steps.iter().for_each(|step| text.push_str(&step_markdown(step)));
    text
}

fn step_markdown(step: &PlanStep) -> String {
    match &step.work {
        StepWork::Call { tool, arguments, facts } => {
            let fence = fence(arguments);
            format!(
                "\n## Step {}: {tool} ({})\n\n{fence}json\n{arguments}\n{fence}\n",
                step.number,
                facts.effect.name()
            )
        }
        StepWork::Task { title, instructions, profile } => {
            format!("\n## Step {}: {title} ({profile})\n\n{instructions}\n", step.number)
        }
    }
}

/// A fence longer than any that stands inside.
fn fence(inside: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for character in inside.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat((longest + 1).max(3))
}
