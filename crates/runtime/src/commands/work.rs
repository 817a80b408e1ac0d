//! The commands behind the words that people type for goals, tasks, runs and schedules.

use planwright_domain::{
    actor::Person,
    autonomy::{
        Autonomy, TaskEnd,
        budget::{Budget, Meter},
    },
    chat::work::{Named, WorkAct},
    command::{AutoCommand, NewSchedule, PersonCommand, Target},
    id::{CommandId, GoalId, RunId, TaskId},
    identity::SessionKey,
    refusal::Refusal,
    session::Session,
};

use crate::{
    commands::Commands,
    engine::calendar,
    ports::journal::{Answer, JournalError},
};

impl Commands {
    /// Does what a person asks of the goals, tasks, runs or schedules of a session.
    pub async fn act_on_work(
        &self,
        identity: &SessionKey,
        id: CommandId,
        person: &Person,
        act: WorkAct,
    ) -> Result<Answer, JournalError> {
        let session = self.queries.session(identity).await?;
        match self.work(&session, act) {
            Ok(command) => self.dispatch(identity, id, person, PersonCommand::Auto(command)).await,
            // What it names may be gone because it was heard before: the same id, the same answer.
            Err(refusal) => self.dispatcher.refuse(identity, id, refusal).await,
        }
    }

    /// The command behind what is asked, or why it cannot be formed.
    pub(crate) fn work(&self, session: &Session, act: WorkAct) -> Result<AutoCommand, Refusal> {
        let auto = &session.auto;
        let fresh = || self.ids.ordered();
        Ok(match act {
            WorkAct::AddGoal(title) => AutoCommand::AddGoal { goal: fresh().into(), title },
            WorkAct::EndGoal { number, reached } => {
                AutoCommand::EndGoal { goal: goal(auto, number)?, reached }
            }
            WorkAct::AddTask { goal: of, title } => {
                let of = of.map(|number| goal(auto, number)).transpose()?;
                AutoCommand::AddTask { task: fresh().into(), goal: of, title }
            }
            WorkAct::EndTask { number, done } => {
                let summary = "by your word".to_owned();
                let end = if done { TaskEnd::Done { summary } } else { TaskEnd::Dropped };
                AutoCommand::EndTask { task: task(auto, number)?, end }
            }
            WorkAct::On { target, drafts, budget } => {
                let target = match target {
                    Some(Named::Goal(number)) => Target::Goal(goal(auto, number)?),
                    Some(Named::Task(number)) => Target::Task(task(auto, number)?),
                    None => Target::NextTask,
                };
                let budget = self.budget(&budget);
                AutoCommand::On { run: fresh().into(), target, budget, drafts }
            }
            WorkAct::Off(number) => AutoCommand::Off { run: run(auto, number)? },
            WorkAct::Resume(number) => AutoCommand::Resume { run: run(auto, number)? },
            WorkAct::AddSchedule { when, goal: of, title } => {
                let of = of.map(|number| goal(auto, number)).transpose()?;
                let (rhythm, next) = calendar::rhythm(&when, self.queries.now())?;
                let (schedule, budget) = (fresh().into(), self.settings.budget);
                let jitter_micros_max = self.settings.jitter_ms_max * 1_000;
                AutoCommand::AddSchedule(NewSchedule {
                    schedule,
                    rhythm,
                    title,
                    goal: of,
                    budget,
                    next,
                    jitter_micros_max,
                })
            }
            WorkAct::EndSchedule(number) => {
                let found = auto.schedules.iter().find(|(_, known)| known.number == number);
                let (schedule, _) = found.ok_or_else(|| not_there("schedule"))?;
                AutoCommand::EndSchedule { schedule: *schedule }
            }
        })
    }

    fn budget(&self, named: &[(Meter, u64)]) -> Budget {
        let mut budget = self.settings.budget;
        for (meter, limit) in named {
            let limit = Some(*limit);
            match meter {
                Meter::Time => budget.micros = limit,
                Meter::ModelCalls => budget.model_calls = limit,
                Meter::ToolCalls => budget.tool_calls = limit,
                Meter::Tokens => budget.tokens = limit,
                Meter::Money => budget.cost_micros = limit,
            }
        }
        budget
    }
}

fn not_there(what: &'static str) -> Refusal {
    Refusal::NotThere { what: what.into() }
}

fn goal(auto: &Autonomy, number: u32) -> Result<GoalId, Refusal> {
    let found = auto.goals.iter().find(|(_, goal)| goal.number == number);
    found.map(|(id, _)| *id).ok_or_else(|| not_there("goal"))
}

fn task(auto: &Autonomy, number: u32) -> Result<TaskId, Refusal> {
    let found = auto.tasks.iter().find(|(_, task)| task.number == number);
    found.map(|(id, _)| *id).ok_or_else(|| not_there("task"))
}

fn run(auto: &Autonomy, number: Option<u32>) -> Result<Option<RunId>, Refusal> {
    let Some(number) = number else { return Ok(None) };
    let found = auto.runs.iter().find(|(_, run)| run.number == number);
    found.map(|(id, _)| Some(*id)).ok_or_else(|| not_there("run"))
}
