//! The audit log: where its signed heads are kept, and whether decisions wait for that.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use planwright_outbound::{
    clock_system::SystemClock,
    head_keeper::{FileHeads, SyslogHeads},
    signing_key::SigningKey,
};
use planwright_runtime::{
    audit::sequencer::Sequencer,
    ports::{
        audit::{Handover, HeadKeeper, Signer},
        journal::Journal,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The file in the data directory that holds the heads, unless another place is named.
pub const HEADS: &str = "audit-heads.jsonl";

/// The audit log.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuditConfig {
    /// Where its signed heads are written: a file, best on another machine, or `syslog`. By default a file in the data
    /// directory.
    pub heads: Option<PathBuf>,
    /// After how many seconds at most.
    pub every_seconds: u32,
    /// Whether a decision counts only once its head was handed over there. If that fails, it is refused.
    pub required: bool,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self { heads: None, every_seconds: 60, required: false }
    }
}

/// What works on the audit log.
pub struct AuditParts {
    /// Takes decisions up.
    pub sequencer: Arc<Sequencer>,
    /// To whom decisions are handed over before they count.
    pub handover: Option<Handover>,
}

impl AuditConfig {
    /// The file of heads, if they are kept in one.
    #[must_use]
    pub fn file(&self, data: &Path) -> Option<PathBuf> {
        match &self.heads {
            Some(heads) if heads.as_os_str() == "syslog" => None,
            Some(heads) => Some(data.join(heads)),
            None => Some(data.join(HEADS)),
        }
    }

    /// What works on the audit log of this journal.
    pub fn parts(&self, journal: Arc<dyn Journal>, data: &Path) -> anyhow::Result<AuditParts> {
        let keeper: Arc<dyn HeadKeeper> = match self.file(data) {
            Some(file) => Arc::new(FileHeads::new(&file)),
            None => Arc::new(SyslogHeads::default()),
        };
        let signer: Arc<dyn Signer> = Arc::new(SigningKey::open(data)?);
        let every = Duration::from_secs(u64::from(self.every_seconds));
        let handover = Handover { signer: signer.clone(), keeper: keeper.clone() };
        let sequencer = Sequencer::new(journal, Arc::new(SystemClock), signer, keeper, every);
        let handover = self.required.then_some(handover);
        Ok(AuditParts { sequencer: Arc::new(sequencer), handover })
    }
}
