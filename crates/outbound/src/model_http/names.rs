//! Names of calls that a server takes: those of another provider may not fit, and may have been given twice.

use std::collections::BTreeSet;

use planwright_runtime::ports::model::WireCall;

/// Names of calls, for one request.
pub(super) struct Names {
    longest: usize,
    given: BTreeSet<String>,
    /// The calls that have no result yet: as they were named, and as they are named here.
    open: Vec<(String, String)>,
}

impl Names {
    /// Names of at most so many letters, digits, `-` and `_`.
    pub(super) fn of(longest: usize) -> Self {
        Self { longest, given: BTreeSet::new(), open: Vec::new() }
    }

    /// The calls of one answer, with their names.
    pub(super) fn calls<'a>(&mut self, calls: &'a [WireCall]) -> Vec<(String, &'a WireCall)> {
        self.open.clear();
        calls.iter().map(|call| (self.name(&call.wire_id), call)).collect()
    }

    fn name(&mut self, wire_id: &str) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let fits = (1..=self.longest).contains(&wire_id.len()) && wire_id.bytes().all(plain);
        let mut name = wire_id.to_owned();
        let mut number = self.given.len();
        while (!fits && name == wire_id) || self.given.contains(&name) {
            name = format!("call_{number}");
            number += 1;
        }
        self.given.insert(name.clone());
        self.open.push((wire_id.to_owned(), name.clone()));
        name
    }

    /// The name of the call that this is the result of.
    pub(super) fn result(&mut self, wire_id: &str) -> String {
        let at = self.open.iter().position(|(named, _)| named == wire_id);
        at.map_or_else(|| wire_id.to_owned(), |at| self.open.remove(at).1)
    }
}
