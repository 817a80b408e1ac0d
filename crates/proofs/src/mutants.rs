//! Mutants of the rules, each of which the domain's own suite must notice.
//!
//! The sources are copied; a mutant is one passage of the copy, written otherwise. Nothing in the domain
//! knows of it. A mutant that does not compile, or whose passage is not there any more, is a defect of this list.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use planwright_testkit::scratch;

/// A passage of a file, and what it becomes.
struct Mutant {
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

const fn mutant(file: &'static str, from: &'static str, to: &'static str) -> Mutant {
    Mutant { file, from, to }
}

/// The mutants.
const MUTANTS: [Mutant; 67] = [
    mutant(
        "rules/plan/decide.rs",
        "Standing::Speaks => Err(PlanRefusal::MayNotDecide),",
        "Standing::Speaks => Ok(()),",
    ),
    mutant("rules/plan/decide.rs", "if plan.shown_to(by) != Some(digest) {", "if false {"),
    mutant(
        "rules/turn/gate.rs",
        "None if approval.envelope.tools.get(name) == Some(&facts.schema) => Gate::Open(id),",
        "None if true => Gate::Open(id),",
    ),
    mutant("rules/turn/decide.rs", "if open.facts.repeat == Repeat::Harmless {", "if true {"),
    mutant(
        "rules/tools.rs",
        "Effect::Write | Effect::External => collects,",
        "Effect::Write | Effect::External => false,",
    ),
    mutant(
        "rules/plan/decide.rs",
        "(PlanStatus::Ready, Some(head)) if head.digest == digest => Ok(head),",
        "(PlanStatus::Ready, Some(head)) => Ok(head),",
    ),
    mutant(
        "rules/plan/decide.rs",
        "(Ending::Done, PlanStatus::Executing(..)) => Ended::Completed,",
        "(Ending::Done, _) => Ended::Completed,",
    ),
    mutant("rules/plan/decide.rs", "if doubts_open > 0 =>", "if doubts_open > 99 =>"),
    mutant(
        "rules/plan/decide.rs",
        "PlanWork::Active(_) => Err(PlanRefusal::WorkAlreadyActive),",
        "PlanWork::Active(_) => Ok(vec![]),",
    ),
    mutant(
        "rules/plan/decide.rs",
        "if plan.unsettled().any(|unsettled| unsettled.number == step) {",
        "if plan.steps().iter().any(|unsettled| unsettled.number == step) {",
    ),
    mutant(
        "rules/plan/authoring.rs",
        "if older { Err(PlanRefusal::TurnOlderThanApproval) } else { Ok(()) }",
        "if older { Ok(()) } else { Ok(()) }",
    ),
    mutant(
        "rules/plan/authoring.rs",
        "Ok(vec![ending_of(plan, Ended::Cancelled, account)])",
        "Ok(vec![ending_of(plan, Ended::Completed, account)])",
    ),
    mutant("rules/plan/authoring.rs", "if !gaps.is_empty() {", "if false {"),
    mutant("rules/plan/authoring.rs", "carried: done(plan),", "carried: Vec::new(),"),
    mutant("rules/plan/evolve.rs", "if approval.digest() != *digest {", "if false {"),
    mutant("rules/plan/evolve.rs", "plan.comments_open.retain(is_left);", ""),
    mutant(
        "rules/plan/evolve.rs",
        "blocks_seen, draft: None, waits: None, ..plan",
        "blocks_seen, waits: None, ..plan",
    ),
    mutant("rules/plan/comments.rs", "if left.is_empty() {", "if true {"),
    mutant("rules/turn/gate.rs", "if !turn.may_use(name) {", "if false {"),
    mutant(
        "rules/turn/gate.rs",
        "Effect::Internal | Effect::Read => return Gate::Open(None),\n        Effect::Write | Effect::External => {}",
        "Effect::Internal | Effect::Read | Effect::External => return Gate::Open(None),\n        Effect::Write => {}",
    ),
    mutant(
        "rules/turn/gate.rs",
        "Some(plan) if tool.is_some() && tool == recorded =>",
        "Some(plan) if tool.is_some() || tool == recorded =>",
    ),
    mutant(
        "rules/turn/gate.rs",
        "turn.executes() == Some(plan.id) && !turn.reported)?;",
        "turn.executes() == Some(plan.id))?;",
    ),
    mutant("rules/turn/permission.rs", "if at >= ask.expires {", "if false {"),
    mutant(
        "rules/turn/permission.rs",
        ".filter(|ask| ask.digest == digest);",
        ".filter(|ask| ask.digest == ask.digest || ask.digest == digest);",
    ),
    mutant("rules/turn/decide.rs", "if open.is_none() && doubt.is_none() {", "if false {"),
    mutant(
        "rules/turn/decide.rs",
        "turn.executes() == Some(plan.id)\n            && !turn.reported\n",
        "turn.executes() == Some(plan.id)\n",
    ),
    mutant(
        "rules/turn/evolve.rs",
        "Permit::Once | Permit::UntilPlanEnds => Some(ask.facts.schema),",
        "Permit::Once | Permit::UntilPlanEnds => None,",
    ),
    mutant("next.rs", ".find(drafts).unwrap_or(front)", ".find(drafts).map_or(*front, |_| *front)"),
    mutant("next.rs", "if session.ask.is_some() {", "if false {"),
    mutant(
        "next.rs",
        "_ if !session.open.is_empty() => started(session),",
        "_ if false => started(session),",
    ),
    mutant(
        "model/effect.rs",
        "!climbs && leased.iter().any(holds)",
        "leased.iter().any(holds) || (climbs && false)",
    ),
    mutant("model/effect.rs", ".filter(|max| made >= *max)", ".filter(|max| made > *max)"),
    mutant(
        "model/effect.rs",
        "suffix.starts_with('.') && host.ends_with(suffix)",
        "host.ends_with(suffix.trim_start_matches('.'))",
    ),
    mutant("model/policy.rs", "self.people.contains(&person.id.0))", "!self.people.is_empty())"),
    mutant(
        "session/fold.rs",
        "SessionEvent::Logged { head } if *head == self.log => {}",
        "SessionEvent::Logged { head } if *head == self.log || true => {}",
    ),
    mutant(
        "session.rs",
        "if verdict == Verdict::DidNotHappen && issued.at < doubt.deadline {",
        "if false {",
    ),
    mutant("rules/autonomy/claim.rs", "known.next != Some(first)", "false"),
    mutant("rules/autonomy/claim.rs", "at < slot.plus_micros(known.jitter_micros)", "at < *slot"),
    mutant(
        "rules/autonomy/standing.rs",
        "|(used, limit)| used >= limit)",
        "|(used, limit)| used > limit)",
    ),
    mutant(
        "rules/autonomy/decide.rs",
        "*times >= limits::SAME_OBSERVATION_MAX",
        "*times > limits::SAME_OBSERVATION_MAX",
    ),
    mutant(
        "rules/autonomy/react.rs",
        "if run.idle >= limits::IDLE_TURNS_MAX => {",
        "if run.idle > limits::IDLE_TURNS_MAX => {",
    ),
    mutant(
        "rules/autonomy/react.rs",
        "Some(slot) if at < slot.until => tick(),",
        "Some(_) => tick(),",
    ),
    mutant(
        "next.rs",
        "queue.iter().find(|queued| !ticks(queued)).or_else(|| queue.first())",
        "queue.iter().find(|queued| !ticks(queued) || true).or_else(|| queue.first())",
    ),
    mutant(
        "model/memory.rs",
        "context.filter(|context| context.session == *session)",
        "context.filter(|context| context.session == *session || true)",
    ),
    mutant(
        "rules/memory/ranking.rs",
        "(legacy, -ranked.why.score,",
        "(legacy && false, -ranked.why.score,",
    ),
    mutant("owner.rs", "if item.text != *text {", "if false {"),
    mutant("owner.rs", "if session.life == Life::Deleted {", "if false {"),
    mutant(
        "rules/life.rs",
        "if theirs || reviews { Ok(()) }",
        "if theirs || reviews || true { Ok(()) }",
    ),
    mutant(
        "rules/turn/retry.rs",
        "FailureKind::TooLarge | FailureKind::Limit | FailureKind::Withheld => Again::Never,",
        "FailureKind::TooLarge | FailureKind::Limit | FailureKind::Withheld => another.unwrap_or(Again::Never),",
    ),
    mutant(
        "rules/turn/retry.rs",
        "model: now.model + 1, tries: 0, ..tried",
        "model: now.model, tries: 0, ..tried",
    ),
    mutant(
        "rules/turn/retry.rs",
        "(until.0 - since.0 <= limits::SUSPENDED_MICROS_MAX)",
        "(until.0 - since.0 >= 0)",
    ),
    mutant(
        "rules/turn/retry.rs",
        "let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;",
        "let mixed = mixed & 0;",
    ),
    mutant(
        "rules/turn/decide.rs",
        "let takes_part = open.work != Work::Compacts;",
        "let takes_part = true;",
    ),
    mutant(
        "next.rs",
        "turn.asking.is_suspended() && is_spoken_to(session)",
        "turn.asking.is_suspended() && false",
    ),
    mutant(
        "rules/notebook/section.rs",
        "if now == expected { Ok(result) } else { Err(SectionRefusal::Leaks) }",
        "Ok(result)",
    ),
    mutant(
        "rules/notebook/section.rs",
        "let ends = |next: &&Heading| own.is_empty() || next.level <= all[at].level;",
        "let ends = |next: &&Heading| next.level <= all[at].level;",
    ),
    mutant(
        "rules/notebook/tool.rs",
        "&& matches!(plan.status, PlanStatus::Collecting | PlanStatus::Ready)",
        "&& !matches!(plan.status, PlanStatus::Failed(_))",
    ),
    mutant(
        "rules/notebook/completion.rs",
        "!ranges.is_empty() && ranges.iter().all(done)",
        "!ranges.is_empty() && ranges.iter().any(done)",
    ),
    mutant("rules/agent.rs", "if !is_foreign(session) {", "if false {"),
    mutant(
        "rules/agent.rs",
        "if let Some(named) = named.filter(|named| *named != step) {",
        "if let Some(named) = named.filter(|_| false) {",
    ),
    mutant(
        "rules/agent.rs",
        "started: session.agent_looked,",
        "started: session.version.following(),",
    ),
    mutant("session/fold.rs", ") if is_foreign(self) => {}", ") if false => {}"),
    mutant(
        "rules/agent.rs",
        "let end = StepEnd::Reported { by: agent.clone(), evidence: evidence.clone() };",
        "let end = StepEnd::Done;",
    ),
    mutant("rules/agent.rs", "if session.owner != request.owner {", "if false {"),
    mutant("rules/plan/rendering.rs", "if !left {", "if true {"),
    mutant("rules/plan/rendering.rs", "if to.surface.is_page() {", "if false {"),
    mutant("model/plan/block.rs", "*occurrence += 1;", "*occurrence += 0;"),
];

/// How many mutants run at quick size.
const QUICK: usize = 3;

/// The suite runs for a few seconds; one that has not ended by then never does.
const RUN_MAX: Duration = Duration::from_secs(45);
const BUILD_MAX: Duration = Duration::from_secs(600);

/// Tries each mutant against the suite; at quick size, a few of them that the seed chooses.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
pub(crate) fn prove(seed: u64, quick: bool) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let mut mutants: Vec<_> = MUTANTS.iter().collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut mutants);
    let count = if quick { QUICK } else { MUTANTS.len() };
    mutants.truncate(count);
    let Tried { survivors, endless } = try_all(&mutants)?;
    survivors.iter().chain(&endless).for_each(|words| println!("  {words}"));
    let well = survivors.is_empty();
    println!(
        "mutants: {} of {count} hand-written mutants of decide, evolve and next were caught, {} of them because \
         the suite did not end, {:.0} s (target all) {}",
        count - survivors.len(),
        endless.len(),
        begun.elapsed().as_secs_f32(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

/// What the suite said about the sources.
#[derive(PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    /// A mutant can make a rule due forever. The suite noticed: it did not pass.
    DidNotEnd,
}

struct Tried {
    survivors: Vec<String>,
    endless: Vec<String>,
}

fn try_all(mutants: &[&Mutant]) -> anyhow::Result<Tried> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let copy = scratch::directory("mutants")?;
    copy_sources(&root, copy.path())?;
    let suite = Suite {
        copy: copy.path(),
        target: root.join("target/mutants"),
        log: copy.path().join("suite.log"),
    };
    if suite.build()? != Verdict::Passed || suite.run()? != Verdict::Passed {
        anyhow::bail!("the suite fails without any mutant:\n{}", fs::read_to_string(&suite.log)?);
    }
    let mut tried = Tried { survivors: Vec::new(), endless: Vec::new() };
    for Mutant { file, from, to } in mutants {
        let path = copy.path().join("crates/domain/src").join(file);
        let text = fs::read_to_string(&path)?;
        let found = text.matches(from).count();
        anyhow::ensure!(found == 1, "{file}: the passage {from:?} is there {found} times");
        fs::write(&path, text.replacen(from, to, 1))?;
        anyhow::ensure!(suite.build()? == Verdict::Passed, "{file}: {to:?} does not compile");
        match suite.run()? {
            Verdict::Failed => {}
            Verdict::Passed => {
                tried.survivors.push(format!("survived: {file}: {from:?} became {to:?}"));
            }
            Verdict::DidNotEnd => {
                // It is the mutant that does not end, and not the machine.
                fs::write(&path, &text)?;
                let is_well = suite.build()? == Verdict::Passed && suite.run()? == Verdict::Passed;
                anyhow::ensure!(
                    is_well,
                    "the suite does not end in time without any mutant either"
                );
                tried.endless.push(format!("did not end: {file}: {from:?} became {to:?}"));
            }
        }
        fs::write(&path, text)?;
    }
    Ok(tried)
}

/// The domain's own suite, over a copy of the sources.
struct Suite<'a> {
    copy: &'a Path,
    target: PathBuf,
    log: PathBuf,
}

impl Suite<'_> {
    fn build(&self) -> anyhow::Result<Verdict> {
        self.cargo_test(&["--no-run"], BUILD_MAX)
    }

    fn run(&self) -> anyhow::Result<Verdict> {
        self.cargo_test(&[], RUN_MAX)
    }

    fn cargo_test(&self, more: &[&str], limit: Duration) -> anyhow::Result<Verdict> {
        let log = File::create(&self.log)?;
        let mut cargo = Command::new("cargo");
        cargo.current_dir(self.copy).env("CARGO_TARGET_DIR", &self.target);
        cargo.env("INSTA_UPDATE", "no").stdout(log.try_clone()?).stderr(log);
        // Each is compiled once and run for seconds.
        let plain = "profile.dev.package.planwright-domain.opt-level=0";
        cargo.args(["--config", plain, "test", "--quiet", "--locked"]);
        cargo.args(["--package", "planwright-domain", "--test", "scenarios"]).args(more);
        // A group of its own: what cargo started ends with it.
        let mut child = cargo.process_group(0).spawn().context("cargo cannot be run")?;
        let until = Instant::now() + limit;
        loop {
            match child.try_wait()? {
                Some(ended) if ended.success() => return Ok(Verdict::Passed),
                Some(_) => return Ok(Verdict::Failed),
                None if Instant::now() < until => thread::sleep(Duration::from_millis(20)),
                None => break,
            }
        }
        let group = format!("-{}", child.id());
        let killed = Command::new("kill").args(["-KILL", "--", &group]).status();
        anyhow::ensure!(killed.context("kill cannot be run")?.success(), "{group} was not killed");
        child.wait()?;
        Ok(Verdict::DidNotEnd)
    }
}

fn copy_sources(root: &Path, copy: &Path) -> anyhow::Result<()> {
    for file in ["Cargo.toml", "Cargo.lock", "clippy.toml", "rustfmt.toml"] {
        fs::copy(root.join(file), copy.join(file)).with_context(|| file.to_owned())?;
    }
    let mut waiting = vec![PathBuf::from("crates")];
    while let Some(directory) = waiting.pop() {
        fs::create_dir_all(copy.join(&directory))?;
        for entry in fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let inside = directory.join(entry.file_name());
            match entry.file_type()? {
                kind if kind.is_dir() && entry.file_name() != "node_modules" => {
                    waiting.push(inside)
                }
                kind if kind.is_file() => {
                    fs::copy(root.join(&inside), copy.join(&inside))?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{MUTANTS, Mutant};

    #[test]
    fn every_mutant_changes_one_passage_that_is_there() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../domain/src");
        for Mutant { file, from, .. } in MUTANTS {
            let text = fs::read_to_string(sources.join(file)).unwrap_or_default();
            assert_eq!(text.matches(from).count(), 1, "{file}: {from:?}");
        }
    }
}
