import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { slotsQuery, timelineQuery, workQuery } from "../../api/queries";
import { Back } from "../common/Back";
import { Chip, Failed, Skeleton } from "../../ui/basics";
import { Timeline } from "./Timeline";
import { verdicts } from "../common/verdicts";
import { WorkForms } from "./WorkForms";
import { dollars, lasting, t, visible } from "../../lib/t";

/** Goals, tasks, runs with their budgets, schedules with their slots, and the timeline of it all. */
export function WorkScreen({ id }: { id: string }) {
  const { plan, run } = useSearch({ from: "/shell/s/$id/work" });
  const work = useQuery(workQuery(id));
  const slots = useQuery(slotsQuery(id));
  const timeline = useQuery(timelineQuery(id, plan, run));
  const navigate = useNavigate();
  if (work.error) return <Failed problem={work.error} retry={() => void work.refetch()} />;
  const { goals = [], tasks = [], runs = [], schedules = [] } = work.data ?? {};
  return (
    <div className="flex h-full min-h-0 flex-col">
      <Back id={id} title={t("Runs")} />
      <div className="max-h-[45%] space-y-3 overflow-y-auto px-4 py-3" tabIndex={0} role="region" aria-label={t("Goals, runs and schedules")}>
        {work.data && <WorkForms id={id} work={work.data} />}
        {runs.map((one) => (
          <article key={one.id} className="card p-4" data-testid="run">
            <div className="flex flex-wrap items-center gap-2">
              <h2 className="font-semibold">{one.kind.replace("_", " ")} {one.number}</h2>
              <Chip tone={one.waits ? "wait" : "run"}>{one.waits ? t("waits") : t("running")}</Chip>
              <span className="flex-1" />
              <button type="button" className="button small quiet" onClick={() => void navigate({ to: "/s/$id/work", params: { id }, search: run === one.id ? {} : { run: one.id } })}>{run === one.id ? t("Whole session") : t("Only this run")}</button>
              {one.resumable && <button type="button" className="button small primary" onClick={() => void verdicts.resumeRun(id, one.number)}>{t("Resume")}</button>}
              <button type="button" className="button small danger" onClick={() => void verdicts.stopRun(id, one.number)}>{t("Stop")}</button>
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
                <li key={goal.id} className="flex flex-wrap items-center gap-2 font-medium">
                  <span className="flex-1 [overflow-wrap:anywhere]">g{goal.number} · {visible(goal.title)}</span>
                  <Ends done={t("Reached")} onEnd={(reached) => void verdicts.endGoal(id, goal.number, reached)} name={goal.title} />
                </li>
              ))}
              {tasks.map((task) => (
                <li key={task.id} className="flex flex-wrap items-center gap-2 pl-4">
                  <span className="flex-1 [overflow-wrap:anywhere]">
                    t{task.number} · {visible(task.title)} {task.ended && <Chip>{task.ended}</Chip>}
                    {task.summary && <span className="text-soft"> {visible(task.summary)}</span>}
                  </span>
                  {!task.ended && <Ends done={t("Done")} onEnd={(done) => void verdicts.endTask(id, task.number, done)} name={task.title} />}
                </li>
              ))}
            </ul>
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
                  {schedule.upcoming.length > 1 && (
                    <details className="text-soft">
                      <summary className="cursor-pointer">{t("next {n} times", { n: schedule.upcoming.length })}</summary>
                      <ol data-testid="upcoming">{schedule.upcoming.map((time) => <li key={time}><time>{new Date(time / 1000).toLocaleString()}</time></li>)}</ol>
                    </details>
                  )}
                  {schedule.next != null && schedule.jitter_micros > 0 && <span className="text-soft">{t("begins {seconds} s after it", { seconds: (schedule.jitter_micros / 1e6).toFixed(1) })}</span>}
                  <button type="button" className="button small quiet" onClick={() => void verdicts.endSchedule(id, schedule.number)}>{t("Off")}</button>
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
          <p className="text-sm text-soft">{t("No goals, tasks, runs or schedules here yet.")}</p>
        )}
      </div>
      <h2 className="label border-t border-line px-4 pt-3">{plan ? t("Timeline of one plan") : run ? t("Timeline of one run") : t("Timeline")}</h2>
      {timeline.isPending ? <Skeleton lines={6} /> : timeline.error ? <Failed problem={timeline.error} /> : <Timeline bars={timeline.data} />}
    </div>
  );
}

/** How a person ends a goal or a task. */
function Ends({ name, done, onEnd }: { name: string; done: string; onEnd: (isDone: boolean) => void }) {
  return (
    <>
      <button type="button" className="button small quiet" aria-label={`${done}: ${visible(name)}`} onClick={() => onEnd(true)}>{done}</button>
      <button type="button" className="button small quiet" aria-label={t("Give up: {name}", { name: visible(name) })} onClick={() => onEnd(false)}>{t("Give up")}</button>
    </>
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
