//! The steps of a revision: calls that `collect` recorded, tasks that `build` wrote.
//!
//! A step of a revision never changes. The folded plan holds heads only; the arguments of a call
//! stay in the journal, and are read again, and compared, when the call is made.

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::Person,
    digest::{Digest, Encoder},
    effect::ToolFacts,
    id::{CallId, PlanId},
};

/// A step of a revision or of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanStep {
    /// Its number, which it keeps while others come and go.
    pub number: u32,
    /// What is to be done.
    pub work: StepWork,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepWork {
    /// Make this call, byte for byte.
    Call {
        /// The tool.
        tool: String,
        /// The arguments, byte for byte.
        arguments: String,
        /// The tool as it stood when the call was recorded.
        facts: ToolFacts,
    },
    /// Let an agent of this profile do this.
    Task {
        /// In a few words.
        title: String,
        /// In full.
        instructions: String,
        /// The name of the profile.
        profile: String,
    },
}

impl PlanStep {
    /// Adds the step to an encoding.
    pub(crate) fn encode(&self, encoder: Encoder) -> Encoder {
        self.work.encode(encoder.number("step", u64::from(self.number)))
    }

    /// What the folded plan keeps of it.
    #[must_use]
    pub fn head(&self) -> StepHead {
        let work = match &self.work {
            StepWork::Call { tool, facts, .. } => {
                HeadWork::Call { tool: tool.clone(), facts: facts.clone() }
            }
            StepWork::Task { title, profile, .. } => {
                HeadWork::Task { title: title.clone(), profile: profile.clone() }
            }
        };
        StepHead { number: self.number, key: self.work.key(), work }
    }
}

impl StepWork {
    /// The digest of the work alone: equal work has equal keys, whatever its number.
    #[must_use]
    pub fn key(&self) -> Digest {
        self.encode(Encoder::of("step", 1)).digest()
    }

    fn encode(&self, encoder: Encoder) -> Encoder {
        match self {
            Self::Call { tool, arguments, facts } => encoder
                .field("tool", tool)
                .field("arguments", arguments)
                .field("effect", facts.effect.name())
                .bytes("schema", &facts.schema.0),
            Self::Task { title, instructions, profile } => encoder
                .field("profile", profile)
                .field("title", title)
                .field("instructions", instructions),
        }
    }
}

/// What the folded plan keeps of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepHead {
    /// Its number.
    pub number: u32,
    /// The digest of its work.
    pub key: Digest,
    /// What kind of work it is.
    pub work: HeadWork,
}

/// What kind of work a step is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HeadWork {
    /// A call.
    Call {
        /// The tool.
        tool: String,
        /// The tool as it stood when the call was recorded.
        facts: ToolFacts,
    },
    /// A task.
    Task {
        /// In a few words.
        title: String,
        /// The name of the profile.
        profile: String,
    },
}

impl StepHead {
    /// In a few words, for lists.
    #[must_use]
    pub fn in_words(&self) -> &str {
        match &self.work {
            HeadWork::Call { tool, .. } => tool,
            HeadWork::Task { title, .. } => title,
        }
    }

    /// The id of the call that this step makes in the execution of its plan with this number. A call that is
    /// made anew in a later execution is another call.
    #[must_use]
    pub fn call(&self, plan: PlanId, execution: u32) -> CallId {
        let digest = Encoder::of("step-call", 1)
            .bytes("plan", plan.0.as_bytes())
            .number("step", u64::from(self.number))
            .number("execution", u64::from(execution))
            .digest();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest.0[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid().into()
    }
}

/// How a step came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepEnd {
    /// It is done.
    Done,
    /// A foreign agent says that it is done; nobody here saw it.
    Reported {
        /// Who, as it names itself.
        by: String,
        /// How it can be seen, as it says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<String>,
    },
    /// It failed; resuming tries it again.
    Failed {
        /// In words.
        why: String,
    },
    /// A person said that it is not needed.
    Skipped {
        /// Who.
        by: Person,
    },
    /// A plan that this one replaced had done it already.
    Carried {
        /// That plan.
        from: PlanId,
    },
}

impl StepEnd {
    /// Whether the step needs nothing more.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        match self {
            Self::Done | Self::Reported { .. } | Self::Skipped { .. } | Self::Carried { .. } => {
                true
            }
            Self::Failed { .. } => false,
        }
    }

    /// What people read of a step that ended so, with this on it: somebody's words make it a claim.
    #[must_use]
    pub fn label_with(&self, summary: Option<&str>) -> &'static str {
        match (self, summary) {
            (Self::Done, Some(_)) => "reported done",
            _ => self.label(),
        }
    }

    /// The word people read.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Reported { .. } => "reported",
            Self::Failed { .. } => "failed",
            Self::Skipped { .. } => "skipped",
            Self::Carried { .. } => "done before",
        }
    }
}

/// What happens to the rest when a recorded call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Nothing more is run.
    #[default]
    Stop,
    /// The steps after it run all the same.
    Continue,
}
