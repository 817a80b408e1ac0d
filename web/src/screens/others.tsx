import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { api, got, once, type Ranked } from "../api/client";
import { controlQuery, listsMoved, memoryQuery, meQuery, modelQuery, plansQuery, queries, sessionsQuery, slotsQuery, timelineQuery, tokensQuery, workQuery } from "../api/queries";
import { Chip, Dialog, Empty, Failed, say, Skeleton, toneOf } from "../parts/basics";
import { ModelForm } from "../parts/ModelForm";
import { PlanPanel } from "../parts/PlanPanel";
import { Timeline } from "../parts/Timeline";
import { line, verdicts } from "../parts/verdicts";
import { ago, dollars, lasting, t, visible } from "../t";

/** Where a screen of a session leads back to. */
function Back({ id, title }: { id: string; title: string }) {
  const control = useQuery(controlQuery(id));
  return (
    <header className="flex items-center gap-2 border-b border-line px-4 py-3">
      <Link to="/s/$id" params={{ id }} className="button quiet small" aria-label={t("Back to the conversation")}>←</Link>
      <h1 className="min-w-0 flex-1 truncate font-semibold">
        {title} <span className="font-normal text-soft">· {visible(control.data?.title || id)}</span>
      </h1>
    </header>
  );
}

/** The review of a plan, on a page of its own. */
export function ReviewScreen() {
  const { id } = useParams({ from: "/shell/s/$id/plan" });
  const plans = useQuery(plansQuery(id));
  return (
    <div className="flex h-full min-h-0 flex-col" key={id}>
      <Back id={id} title={t("Review")} />
      <div className="mx-auto flex min-h-0 w-full max-w-5xl flex-1">
        <div className="min-w-0 flex-1 bg-raised md:border-x md:border-line"><PlanPanel id={id} wide /></div>
        <aside aria-label={t("Plans of this session")} className="hidden w-60 space-y-2 overflow-y-auto p-4 text-sm lg:block">
          <p className="label">{t("Plans of this session")}</p>
          {[...(plans.data ?? [])].reverse().map((plan) => (
            <Link key={plan.planId} to="/s/$id/work" params={{ id }} search={{ plan: plan.planId }} className="block rounded-lg p-2 hover:bg-sunken">
              <span className="line-clamp-2">{visible(plan.title || t("Untitled"))}</span>
              <span className="flex gap-2 pt-1"><Chip tone={toneOf(plan.status)}>{t(plan.status)}</Chip><span className="text-soft">{t("rev {n}", { n: plan.revisions })}</span></span>
            </Link>
          ))}
          <p className="label pt-4">{t("Keys")}</p>
          <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-1 text-soft">
            {[["J K", t("next, previous line")], ["C", t("comment")], ["X", t("drop the step")], ["D", t("changes or plan")], ["⌘↵", t("send notes")], ["⇧A", t("approve")]].map(([key, words]) => (
              <div key={key} className="contents"><dt className="font-mono">{key}</dt><dd>{words}</dd></div>
            ))}
          </dl>
        </aside>
      </div>
    </div>
  );
}

/** Goals, tasks, runs with their budgets, schedules with their slots, and the timeline of it all. */
export function WorkScreen() {
  const { id } = useParams({ from: "/shell/s/$id/work" });
  const { plan, run } = useSearch({ from: "/shell/s/$id/work" });
  const work = useQuery(workQuery(id));
  const slots = useQuery(slotsQuery(id));
  const timeline = useQuery(timelineQuery(id, plan, run));
  const navigate = useNavigate();
  if (work.error) return <Failed problem={work.error} retry={() => void work.refetch()} />;
  const { goals = [], tasks = [], runs = [], schedules = [] } = work.data ?? {};
  const say = (text: string) => void line(id, text).catch((problem: Error) => Promise.reject(problem));
  return (
    <div className="flex h-full min-h-0 flex-col" key={id}>
      <Back id={id} title={t("Runs")} />
      <div className="max-h-[45%] space-y-3 overflow-y-auto px-4 py-3" tabIndex={0} role="region" aria-label={t("Goals, runs and schedules")}>
        {runs.map((one) => (
          <article key={one.id} className="card p-4" data-testid="run">
            <div className="flex flex-wrap items-center gap-2">
              <h2 className="font-semibold">{one.kind.replace("_", " ")} {one.number}</h2>
              <Chip tone={one.waits ? "wait" : "run"}>{one.waits ? t("waits") : t("running")}</Chip>
              <span className="flex-1" />
              <button type="button" className="button small quiet" onClick={() => void navigate({ to: "/s/$id/work", params: { id }, search: run === one.id ? {} : { run: one.id } })}>{run === one.id ? t("Whole session") : t("Only this run")}</button>
              {one.waits && <button type="button" className="button small primary" onClick={() => say(`/auto resume ${one.number}`)}>{t("Resume")}</button>}
              <button type="button" className="button small danger" onClick={() => say(`/auto off ${one.number}`)}>{t("Stop")}</button>
            </div>
            {one.waits && <p className="mt-1 text-sm text-wait">{visible(one.waits)}</p>}
            <div className="mt-2 grid gap-x-6 gap-y-1 sm:grid-cols-2">
              {one.used.map(([name, used, limit]) => (
                <Meter key={String(name)} name={String(name)} used={Number(used)} limit={Number(limit)} />
              ))}
            </div>
          </article>
        ))}
        {(goals.length > 0 || tasks.length > 0) && (
          <article className="card p-4">
            <h2 className="label">{t("Goals and tasks")}</h2>
            <ul className="mt-1 space-y-1 text-sm" data-testid="goals">
              {goals.map((goal) => (
                <li key={goal.id} className="font-medium">g{goal.number} · {visible(goal.title)}</li>
              ))}
              {tasks.map((task) => (
                <li key={task.id} className="pl-4">
                  t{task.number} · {visible(task.title)} {task.ended && <Chip tone={task.ended === "done" ? "good" : ""}>{task.ended}</Chip>}
                  {task.summary && <span className="text-soft"> {visible(task.summary)}</span>}
                </li>
              ))}
            </ul>
            {runs.length === 0 && <button type="button" className="button small mt-2" onClick={() => say("/auto on")}>{t("Start a run")}</button>}
          </article>
        )}
        {schedules.length > 0 && (
          <article className="card p-4">
            <h2 className="label">{t("Schedules")}</h2>
            <ul className="mt-1 space-y-1 text-sm">
              {schedules.map((schedule) => (
                <li key={schedule.number} className="flex flex-wrap items-center gap-2">
                  <span className="font-medium">{visible(schedule.title)}</span>
                  <span className="text-soft">{visible(schedule.rhythm)}</span>
                  {schedule.next != null && <span className="text-soft">{t("next {time}", { time: new Date(schedule.next / 1000).toLocaleString() })}</span>}
                  <button type="button" className="button small quiet" onClick={() => say(`/schedule off ${schedule.number}`)}>{t("Off")}</button>
                </li>
              ))}
            </ul>
            {(slots.data ?? []).length > 0 && (
              <details className="mt-2 text-sm">
                <summary className="cursor-pointer text-soft">{t("Slot ledger: {n}", { n: slots.data?.length ?? 0 })}</summary>
                <ul className="mt-1" data-testid="slots">{slots.data?.map((slot, at) => <li key={at}><time className="font-mono text-xs">{slot.slot}</time> {visible(slot.schedule)} · {slot.verdict}</li>)}</ul>
              </details>
            )}
          </article>
        )}
        {work.data && runs.length + goals.length + tasks.length + schedules.length === 0 && (
          <p className="text-sm text-soft">{t("No goals, tasks, runs or schedules here. Say /goal add, /task add or /schedule add in the conversation.")}</p>
        )}
      </div>
      <h2 className="label border-t border-line px-4 pt-3">{plan ? t("Timeline of one plan") : run ? t("Timeline of one run") : t("Timeline")}</h2>
      {timeline.isPending ? <Skeleton lines={6} /> : timeline.error ? <Failed problem={timeline.error} /> : <Timeline bars={timeline.data} />}
    </div>
  );
}

function Meter({ name, used, limit }: { name: string; used: number; limit: number }) {
  const part = limit > 0 ? Math.min(100, (used / limit) * 100) : 0;
  const words = (value: number) => (name === "time" ? lasting(value / 1000) : /money|dollar|cost/.test(name) ? dollars(value) : value.toLocaleString());
  return (
    <div className="text-xs" data-testid="meter" data-over={part >= 80 || undefined}>
      <div className="flex justify-between"><span>{name}</span><span className={`font-mono ${part >= 80 ? "font-semibold text-wait" : "text-soft"}`}>{words(used)} / {words(limit)}</span></div>
      <progress className={`meter ${part >= 80 ? "over" : ""}`} value={part} max={100} aria-label={name} />
    </div>
  );
}

/** What is remembered: the chain exactly as it is retrieved, with why each item was found. */
export function MemoryScreen() {
  const { id } = useParams({ from: "/shell/s/$id/memory" });
  const [words, setWords] = useState("");
  const [query, setQuery] = useState("");
  const memory = useQuery(memoryQuery(id, query));
  const [promote, setPromote] = useState<Ranked | null>(null);
  const [edit, setEdit] = useState<{ item: Ranked; text: string } | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setQuery(words.trim()), 250);
    return () => clearTimeout(timer);
  }, [words]);
  const scope = (item: Ranked) => (typeof item.item.scope === "string" ? item.item.scope : (Object.keys(item.item.scope)[0] ?? ""));
  const source = (item: Ranked) => (typeof item.item.provenance === "string" ? item.item.provenance : (Object.keys(item.item.provenance)[0] ?? ""));
  return (
    <div className="flex h-full min-h-0 flex-col" key={id}>
      <Back id={id} title={t("Memory")} />
      <div className="mx-auto min-h-0 w-full max-w-3xl flex-1 space-y-3 overflow-y-auto p-4" tabIndex={0} role="region" aria-label={t("What is remembered")}>
        <input className="field" type="search" aria-label={t("Find what is remembered")} placeholder={t("Find, as the agent does when a turn begins")} value={words} onChange={(event) => setWords(event.target.value)} />
        {memory.error && <Failed problem={memory.error} retry={() => void memory.refetch()} />}
        {memory.data && (
          <p className="text-sm text-soft" data-testid="chain">
            {memory.data.chain.map(([name, count]) => `${String(name).replace(/:.*/, "")} (${count})`).join(" → ")}
            {" | "}
            {t("blocked: {n} foreign", { n: (memory.data.elsewhere ?? 0) + memory.data.blocked })}
          </p>
        )}
        {memory.data?.items.length === 0 && <Empty title={query ? t("Nothing here fits these words.") : t("Nothing is remembered here yet. Say /memory save, or let the agent.")} />}
        <ul className="space-y-2">
          {memory.data?.items.map((row) => (
            <li key={`${row.item.id}/${scope(row)}`} className="card p-3" data-testid="memory-item">
              <p className="[overflow-wrap:anywhere]">{visible(row.item.text)}</p>
              <div className="mt-2 flex flex-wrap items-center gap-2 text-xs text-soft">
                <Chip tone={scope(row) === "global" ? "run" : ""}>{scope(row)}</Chip>
                <span>{row.item.kind}</span>
                <span>{t("from {source}", { source: source(row) })}</span>
                <span>{t("{n} % sure", { n: row.item.confidence })}</span>
                {row.why.matched.length > 0 && <span data-testid="why">{t("found by {words}; score {score}", { words: row.why.matched.join(", "), score: row.why.score })}</span>}
                <span className="flex-1" />
                {scope(row) !== "global" && <button type="button" className="button quiet small" onClick={() => setEdit({ item: row, text: row.item.text })}>{t("Edit")}</button>}
                <button type="button" className="button quiet small" onClick={() => void verdicts.forget(id, row.item.id)}>{t("Forget")}</button>
                {scope(row) !== "global" && <button type="button" className="button quiet small" onClick={() => setPromote(row)}>{t("Promote to global…")}</button>}
              </div>
            </li>
          ))}
        </ul>
      </div>
      <Dialog title={t("Make this known in every session?")} open={promote !== null} onClose={() => setPromote(null)}>
        <blockquote className="rounded bg-sunken p-3 [overflow-wrap:anywhere]" data-testid="promote-text">{visible(promote?.item.text ?? "")}</blockquote>
        <p className="mt-2 text-sm text-soft">{t("Every conversation of yours is told this where it fits.")}</p>
        <div className="mt-4 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setPromote(null)}>{t("Cancel")}</button>
          <button type="button" className="button primary" onClick={() => promote && void verdicts.promote(id, promote.item.id, promote.item.text).then(() => setPromote(null))}>{t("Promote exactly this text")}</button>
        </div>
      </Dialog>
      <Dialog title={t("Remember it in other words")} open={edit !== null} onClose={() => setEdit(null)}>
        <textarea className="field" rows={4} aria-label={t("The words")} value={edit?.text ?? ""} onChange={(event) => edit && setEdit({ ...edit, text: event.target.value })} />
        <div className="mt-3 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setEdit(null)}>{t("Cancel")}</button>
          <button type="button" className="button primary" disabled={!edit?.text.trim()} onClick={() => edit && void line(id, `/memory edit ${edit.item.item.id} ${edit.text.trim()}`).then(() => setEdit(null), (problem: Error) => say(problem.message, "bad"))}>{t("Save")}</button>
        </div>
      </Dialog>
    </div>
  );
}

/** Every session, with what it costs and where it stands. */
export function SessionsScreen() {
  const rows = useQuery(sessionsQuery);
  const [gone, setGone] = useState<{ id: string; title: string } | null>(null);
  const control = useQuery({ ...controlQuery(gone?.id ?? ""), enabled: gone !== null });
  if (rows.isPending) return <Skeleton lines={6} />;
  if (rows.error) return <Failed problem={rows.error} retry={() => void rows.refetch()} />;
  return (
    <div className="mx-auto w-full max-w-4xl p-4">
      <h1 className="mb-3 text-lg font-semibold">{t("Sessions")}</h1>
      {rows.data.length === 0 && <Empty title={t("There are no sessions yet.")} />}
      <ul className="space-y-2">
        {rows.data.map((row) => (
          <li key={row.sessionId} className={`card flex flex-wrap items-center gap-x-3 gap-y-1 p-3 ${row.archived ? "bg-sunken" : ""}`}>
            <Link to="/s/$id" params={{ id: row.sessionId }} className="min-w-0 flex-1 basis-60 truncate font-medium hover:underline">{visible(row.title || row.sessionId)}</Link>
            <span className="text-xs text-soft">{row.sessionId.split(":")[0]} · {row.plan ? t("plan {status}", { status: row.plan }) : t("no plan")} · {ago(row.updated)} · {dollars(row.costMicros ?? 0)}</span>
            {row.waiting && <Chip tone="wait">{t("needs you")}</Chip>}
            {row.parked && <Chip tone="bad">{t("parked")}</Chip>}
            <span className="flex gap-1">
              <button type="button" className="button quiet small" onClick={() => void verdicts.archive(row.sessionId, !row.archived)}>{row.archived ? t("Bring back") : t("Put away")}</button>
              <button type="button" className="button quiet small danger" onClick={() => setGone({ id: row.sessionId, title: row.title || row.sessionId })}>{t("Delete…")}</button>
            </span>
          </li>
        ))}
      </ul>
      <Dialog title={t("Delete “{title}”?", { title: visible(gone?.title ?? "") })} open={gone !== null} onClose={() => setGone(null)}>
        <p>{t("This ends {plan} and every run and schedule in it, leaves {queued} messages unanswered, and forgets what only this session remembers. It cannot be undone.", { plan: control.data?.active ? t("its plan") : t("no plan"), queued: control.data?.queued ?? 0 })}</p>
        <div className="mt-4 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setGone(null)}>{t("Keep it")}</button>
          <button type="button" className="button danger" onClick={() => gone && void verdicts.remove(gone.id).then(() => setGone(null))}>{t("Delete it")}</button>
        </div>
      </Dialog>
    </div>
  );
}

/** The model, who is logged in, and how it looks. */
export function SettingsScreen() {
  const { data: me } = useQuery(meQuery);
  const { data: model } = useQuery(modelQuery);
  const tokens = useQuery(tokensQuery);
  const navigate = useNavigate();
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "light");
  const choose = (name: string) => {
    localStorage.setItem("theme", name);
    document.documentElement.dataset.theme = name;
    setTheme(name);
  };
  const logOut = async () => {
    await got(api.POST("/api/logout")).catch(() => {});
    queries.clear();
    void navigate({ to: "/login" });
  };
  const revoke = async (id: string) => {
    await got(api.DELETE("/api/tokens/{id}", { params: { path: { id }, header: once() } as { path: { id: string } } })).then(() => say(t("Taken back"), "good"), (problem: Error) => say(problem.message, "bad"));
    void tokens.refetch();
    listsMoved();
  };
  return (
    <div className="mx-auto w-full max-w-3xl space-y-6 p-4">
      <h1 className="text-lg font-semibold">{t("Settings")}</h1>
      <section className="card p-4">
        <h2 className="font-semibold">{t("Model")}</h2>
        <p className="mb-3 text-sm text-soft">{model?.isDemo ? t("Demo: a script, no network.") : t("{name} at {url}", { name: model?.name ?? "", url: model?.url ?? t("the operator's choice") })}</p>
        {model?.isChangeable && me?.decides && <ModelForm done={() => say(t("This model is asked from now on"), "good")} />}
        {model && !model.isChangeable && <p className="text-sm text-soft">{t("It is set in the configuration of this installation.")}</p>}
        {me && !me.decides && <p className="text-sm text-soft">{t("Changing it is a decision: log in with the passphrase.")}</p>}
      </section>
      <section className="card p-4">
        <h2 className="font-semibold">{t("Appearance")}</h2>
        <div role="radiogroup" aria-label={t("Appearance")} className="mt-2 flex gap-2">
          {[["light", t("Light")], ["dark", t("Dark")]].map(([name = "", words]) => (
            <button key={name} type="button" role="radio" aria-checked={theme === name} className={`button small ${theme === name ? "!border-accent !text-accent" : ""}`} onClick={() => choose(name)}>{words}</button>
          ))}
        </div>
      </section>
      <section className="card p-4">
        <h2 className="font-semibold">{t("You")}</h2>
        <p className="text-sm text-soft">{me ? t("{person}, {right}; version {version}", { person: me.person, right: me.decides ? t("may decide") : t("may read and talk"), version: me.version }) : ""}</p>
        <button type="button" className="button small mt-2" onClick={() => void logOut()}>{t("Log out")}</button>
      </section>
      <section className="card p-4">
        <h2 className="font-semibold">{t("Logins and tokens")}</h2>
        <ul className="mt-2 space-y-1 text-sm">
          {tokens.data?.map((token) => (
            <li key={token.id} className="flex flex-wrap items-center gap-2">
              <span className="font-medium">{visible(token.name)}</span>
              <span className="text-soft">{token.person} · {token.decides ? t("decides") : t("speaks")} · {token.expires ? t("until {time}", { time: new Date(token.expires).toLocaleString() }) : t("until taken back")}</span>
              {token.id === me?.grant ? <Chip tone="run">{t("this one")}</Chip> : me?.decides && <button type="button" className="button quiet small" onClick={() => void revoke(token.id)}>{t("Take back")}</button>}
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}
