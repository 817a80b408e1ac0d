//! The pages as they begin.

use super::Page;

/// A page as it begins, for a task of this title.
#[must_use]
pub fn fresh(page: Page, title: &str, stamp: &str) -> String {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    match page {
        Page::TaskPlan => format!(
            "# {title}\n\nBegun {stamp} UTC.\n\nStatus: in progress\n\n## Goal\n\nWhat is true when this is done.\n\n\
             ## Phases\n\n### Phase 1: Understand\n\nStatus: in progress\n\n- [ ] What is asked for, and what is there\n\n\
             ### Phase 2: Do\n\nStatus: pending\n\n- [ ] The work itself\n\n\
             ### Phase 3: Check\n\nStatus: pending\n\n- [ ] Does it hold?\n\n## Decisions\n\n## Open questions\n"
        ),
        Page::Findings => format!(
            "# Findings: {title}\n\nWrite down what you found after every second look, before it is forgotten.\n\n## Notes\n"
        ),
        Page::Progress => format!(
            "# Progress: {title}\n\nWhat was done, what was tried, what went wrong.\n\n## Log\n"
        ),
    }
}
