//! Which of what was found is told: each scope of the chain has a share of its own, nothing is told twice.

use std::collections::BTreeSet;

use crate::{
    model::{
        memory::{
            Chain, Item,
            rank::{Candidates, Ranked, Recalled},
        },
        time::Time,
    },
    rules::memory::ranking::rank,
};

/// Roughly how many tokens an item costs.
fn tokens(item: &Item) -> usize {
    item.text.len() / 4 + 8
}

/// Chooses from what each scope of the chain gave, in the order of the chain. A scope has its share of the
/// budget; what it leaves goes to the others, nearest first.
#[must_use]
pub fn select(
    chain: &Chain,
    question: &[String],
    found: Vec<Candidates>,
    now: Time,
    budget_tokens: usize,
) -> Recalled {
    let mut blocked = 0;
    let scopes = chain.scopes();
    let ranked: Vec<Vec<Ranked>> = scopes
        .iter()
        .zip(found)
        .map(|(scope, mut found)| {
            let before = found.items.len();
            found.items.retain(|item| item.scope == *scope && chain.admits(item));
            blocked += (before - found.items.len()) as u64;
            rank(question, found, now)
        })
        .collect();
    let share = budget_tokens / scopes.len().max(1);
    let mut selected = BTreeSet::new();
    let mut chosen: Vec<Vec<Ranked>> = Vec::new();
    let mut rest: Vec<Vec<Ranked>> = Vec::new();
    let mut left = budget_tokens;
    for of_scope in ranked {
        let (mut used, mut here, mut over) = (0, Vec::new(), Vec::new());
        for ranked in of_scope {
            let cost = tokens(&ranked.item);
            if used + cost <= share && !selected.contains(&ranked.item.digest()) {
                selected.insert(ranked.item.digest());
                used += cost;
                here.push(ranked);
            } else {
                over.push(ranked);
            }
        }
        left -= used;
        chosen.push(here);
        rest.push(over);
    }
    for (chosen, rest) in chosen.iter_mut().zip(rest) {
        for ranked in rest {
            let cost = tokens(&ranked.item);
            if cost <= left && selected.insert(ranked.item.digest()) {
                left -= cost;
                chosen.push(ranked);
            }
        }
    }
    Recalled { items: chosen.into_iter().flatten().collect(), blocked }
}
