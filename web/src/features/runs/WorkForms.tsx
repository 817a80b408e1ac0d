import { useState, type FormEvent, type ReactNode } from "react";
import type { Schemas, Work } from "../../api/client";
import { t, visible } from "../../lib/t";
import { Dialog } from "../../ui/Dialog";
import { verdicts } from "../common/verdicts";

/** What a run can work on. */
type Open = Pick<Work, "goals" | "tasks">;
type Which = "goal" | "task" | "run" | "schedule";

/** What can be begun here, each with its form. */
export function WorkForms({ id, work }: { id: string; work: Open }) {
  const [open, setOpen] = useState<Which | null>(null);
  const close = () => setOpen(null);
  const words: [Which, string][] = [["goal", t("Add a goal…")], ["task", t("Add a task…")], ["run", t("Start a run…")], ["schedule", t("Add a schedule…")]];
  return (
    <div className="flex flex-wrap gap-2" data-testid="work-forms">
      {words.map(([which, label]) => <button key={which} type="button" className="button small" onClick={() => setOpen(which)}>{label}</button>)}
      <Dialog title={t("A goal")} open={open === "goal"} onClose={close}><GoalForm id={id} onDone={close} /></Dialog>
      <Dialog title={t("A task")} open={open === "task"} onClose={close}><TaskForm id={id} goals={work.goals} onDone={close} /></Dialog>
      <Dialog title={t("A run")} open={open === "run"} onClose={close}><RunForm id={id} work={work} onDone={close} /></Dialog>
      <Dialog title={t("A schedule")} open={open === "schedule"} onClose={close}><ScheduleForm id={id} goals={work.goals} onDone={close} /></Dialog>
    </div>
  );
}

/** A form that sends once, and closes when it was taken. */
function Form({ about, save, isReady, send, onDone, children }: { about: string; save: string; isReady: boolean; send: () => Promise<"done" | "stale" | "refused">; onDone: () => void; children: ReactNode }) {
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!isReady || busy) return;
    setBusy(true);
    const came = await send();
    setBusy(false);
    if (came === "done") onDone();
  };
  return (
    <form className="space-y-3" onSubmit={(event) => void submit(event)}>
      <p className="text-sm text-soft">{about}</p>
      {children}
      <div className="flex justify-end gap-2">
        <button type="button" className="button" onClick={onDone}>{t("Cancel")}</button>
        <button type="submit" className="button primary" disabled={!isReady || busy}>{save}</button>
      </div>
    </form>
  );
}

function Field({ label, children }: { label: string; children: ReactNode }) {
  return <label className="block text-sm"><span className="mb-1 block text-soft">{label}</span>{children}</label>;
}

function GoalForm({ id, onDone }: { id: string; onDone: () => void }) {
  const [title, setTitle] = useState("");
  return (
    <Form about={t("What is to be reached. Its tasks say how; a run works on them one after the other.")} save={t("Add the goal")} isReady={!!title.trim()} send={() => verdicts.addGoal(id, title.trim())} onDone={onDone}>
      <Field label={t("Goal")}><input autoFocus className="field" value={title} onChange={(event) => setTitle(event.target.value)} /></Field>
    </Form>
  );
}

function TaskForm({ id, goals, onDone }: { id: string; goals: Work["goals"]; onDone: () => void }) {
  const [title, setTitle] = useState("");
  const [goal, setGoal] = useState(goals[0]?.number ?? 0);
  return (
    <Form about={t("One piece of work, with an end.")} save={t("Add the task")} isReady={!!title.trim()} send={() => verdicts.addTask(id, title.trim(), goal || null)} onDone={onDone}>
      <Field label={t("Task")}><input autoFocus className="field" value={title} onChange={(event) => setTitle(event.target.value)} /></Field>
      <GoalField goals={goals} goal={goal} setGoal={setGoal} />
    </Form>
  );
}

function GoalField({ goals, goal, setGoal }: { goals: Work["goals"]; goal: number; setGoal: (goal: number) => void }) {
  if (goals.length === 0) return null;
  return (
    <Field label={t("Belongs to")}>
      <select className="field" value={goal} onChange={(event) => setGoal(Number(event.target.value))}>
        <option value={0}>{t("no goal")}</option>
        {goals.map(({ number, title }) => <option key={number} value={number}>g{number} · {visible(title)}</option>)}
      </select>
    </Field>
  );
}

/** What a run may use, as a person says it: the name of the limit, its words, and how many of the server's units one is. */
const LIMITS = [
  ["minutes", "Minutes", 1],
  ["modelCalls", "Calls of the model", 1],
  ["toolCalls", "Calls of tools", 1],
  ["costMicros", "Dollars", 1_000_000],
] as const;

function RunForm({ id, work, onDone }: { id: string; work: Open; onDone: () => void }) {
  const tasks = work.tasks.filter(({ ended }) => !ended);
  // A goal without an open task gives a run nothing to do.
  const goals = work.goals.filter(({ number }) => tasks.some(({ goal }) => goal === number));
  const [target, setTarget] = useState(goals[0] ? `g${goals[0].number}` : "");
  const [drafts, setDrafts] = useState(false);
  const [limits, setLimits] = useState<Record<string, string>>({});
  const said = LIMITS.flatMap(([name, , unit]) => (limits[name]?.trim() ? [[name, Math.round(Number(limits[name]) * unit)] as const] : []));
  const isReady = said.every(([, value]) => Number.isFinite(value) && value > 0) && (target !== "" || tasks.some(({ goal }) => goal === null || goal === undefined));
  const number = Number(target.slice(1)) || null;
  const send = () => verdicts.startRun(id, { minutes: null, modelCalls: null, toolCalls: null, tokens: null, costMicros: null, goal: target.startsWith("g") ? number : null, task: target.startsWith("t") ? number : null, drafts, ...Object.fromEntries(said) });
  return (
    <Form about={t("The agent works without you until it is done, needs you, or has used what it may.")} save={t("Start the run")} isReady={isReady} send={send} onDone={onDone}>
      <Field label={t("Works on")}>
        <select className="field" value={target} onChange={(event) => setTarget(event.target.value)}>
          {goals.map((goal) => <option key={goal.id} value={`g${goal.number}`}>{t("goal")} g{goal.number} · {visible(goal.title)}</option>)}
          {tasks.map((task) => <option key={task.id} value={`t${task.number}`}>{t("task")} t{task.number} · {visible(task.title)}</option>)}
          <option value="">{t("the oldest task that belongs to no goal")}</option>
        </select>
      </Field>
      {!isReady && said.length === 0 && <p className="text-sm text-wait">{t("There is nothing to work on here: add a task first.")}</p>}
      <label className="flex items-center gap-2 text-sm"><input type="checkbox" checked={drafts} onChange={(event) => setDrafts(event.target.checked)} />{t("It writes a plan first, and waits for my approval (plan work must be on)")}</label>
      <fieldset className="grid grid-cols-2 gap-2">
        <legend className="mb-1 text-sm text-soft">{t("At most (what the operator set, where nothing is said)")}</legend>
        {LIMITS.map(([name, label]) => (
          <Field key={name} label={t(label)}><input className="field" inputMode="decimal" value={limits[name] ?? ""} onChange={(event) => setLimits({ ...limits, [name]: event.target.value })} /></Field>
        ))}
      </fieldset>
    </Form>
  );
}

const KINDS = [["every", "again and again"], ["daily", "every day"], ["weekdays", "Monday to Friday"], ["once", "once"], ["cron", "as a cron expression says"]] as const;
type Kind = (typeof KINDS)[number][0];

/** When, as the server is told. */
export function whenOf(kind: Kind, { minutes, time, at, cron, zone }: { minutes: string; time: string; at: string; cron: string; zone: string }): Schemas["WhenDto"] | null {
  const [hour, minute] = time.split(":").map(Number);
  const daily = (days: string): Schemas["WhenDto"] | null => (hour === undefined || minute === undefined || !Number.isFinite(hour + minute) ? null : { kind: "cron", expression: `${minute} ${hour} * * ${days}`, zone });
  switch (kind) {
    case "every":
      return Number(minutes) >= 1 ? { kind: "every", minutes: Math.round(Number(minutes)) } : null;
    case "daily":
      return daily("*");
    case "weekdays":
      return daily("1-5");
    case "once":
      return at ? { kind: "once", at, zone } : null;
    case "cron":
      return cron.trim().split(/\s+/).length === 5 ? { kind: "cron", expression: cron.trim(), zone } : null;
  }
}

function ScheduleForm({ id, goals, onDone }: { id: string; goals: Work["goals"]; onDone: () => void }) {
  const [kind, setKind] = useState<Kind>("daily");
  const [said, setSaid] = useState({ minutes: "60", time: "09:00", at: "", cron: "0 9 * * 1-5", zone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC" });
  const [title, setTitle] = useState("");
  const [goal, setGoal] = useState(0);
  const when = whenOf(kind, said);
  const input = (name: keyof typeof said, label: string, more: object = {}) => <Field label={label}><input className="field" value={said[name]} onChange={(event) => setSaid({ ...said, [name]: event.target.value })} {...more} /></Field>;
  return (
    <Form about={t("At each of its times a task is made and a run works on it.")} save={t("Add the schedule")} isReady={!!title.trim() && !!when} send={async () => (when ? verdicts.addSchedule(id, { when, title: title.trim(), goal: goal || null }) : "refused")} onDone={onDone}>
      <Field label={t("What is to be done")}><input autoFocus className="field" value={title} onChange={(event) => setTitle(event.target.value)} /></Field>
      <Field label={t("When")}>
        <select className="field" value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
          {KINDS.map(([value, label]) => <option key={value} value={value}>{t(label)}</option>)}
        </select>
      </Field>
      <div className="grid grid-cols-2 gap-2">
        {kind === "every" && input("minutes", t("Minutes between"), { type: "number", min: 1 })}
        {(kind === "daily" || kind === "weekdays") && input("time", t("At"), { type: "time" })}
        {kind === "once" && input("at", t("At"), { type: "datetime-local" })}
        {kind === "cron" && input("cron", t("Minute, hour, day, month, weekday"))}
        {kind !== "every" && input("zone", t("Time zone"))}
      </div>
      <GoalField goals={goals} goal={goal} setGoal={setGoal} />
    </Form>
  );
}
