//! Any commands, in any order, keep every invariant: the size that runs before every commit.

use planwright_testkit::machine::{Hits, play};

/// How many sequences; `./prove machine` plays a million.
const SEQUENCES: u64 = 20_000;

#[test]
fn any_commands_in_any_order_keep_every_invariant() {
    let workers: Vec<_> = (0..2)
        .map(|worker| {
            std::thread::spawn(move || {
                let mut hits = Hits::new();
                (worker..SEQUENCES)
                    .step_by(2)
                    .filter_map(|seed| play(seed, &mut hits).err())
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let broken: Vec<_> = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
    assert_eq!(broken, Vec::<String>::new());
}
