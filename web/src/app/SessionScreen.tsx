import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { api, got, inSession, isForeign, problemWords } from "../api/client";
import { controlQuery, meQuery, modelQuery, sessionsQuery, usageQuery } from "../api/queries";
import { useSession } from "../session/store";
import { ActivityLine } from "../features/chat/ActivityLine";
import { Chat } from "../features/chat/Chat";
import { Composer } from "../features/chat/Composer";
import { LimitCard } from "../features/permissions/Asks";
import { PlanPanel } from "../features/review/PlanPanel";
import { Dialog } from "../ui/Dialog";
import { inText, isMostUsed, say, useKept } from "../ui/basics";
import { verdicts } from "../features/common/verdicts";
import { readText, writeText } from "../lib/storage";
import { dollars, t, visible } from "../lib/t";

/** A conversation and its plan, side by side; on a phone, one at a time. */
export function SessionScreen({ id }: { id: string }) {
  const navigate = useNavigate();
  const control = useQuery(controlQuery(id));
  const { log } = useSession(id);
  const { data: me } = useQuery(meQuery);
  const [panel, setPanel] = useState(() => readText("panel") !== "closed");
  const [tab, setTab] = useState<"chat" | "plan">("chat");
  const review = () => {
    setPanel(true);
    setTab("plan");
  };
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key === "p" && !inText(event) && !event.metaKey && !event.ctrlKey && !document.querySelector("dialog[open]")) {
        setPanel((open) => {
          writeText("panel", open ? "closed" : "open");
          return !open;
        });
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
  const [kept, keep] = useKept("panel-width", "");
  const width = Number(kept) || null;
  const setWidth = (width: number | null) => keep(width ? String(width) : "");
  const session = control.data;
  const name = session?.sessionId;
  useEffect(() => {
    // A link that somebody else sent names a session of one's own by its owner too.
    if (name && name !== id) void navigate({ to: "/s/$id", params: { id: name }, replace: true });
  }, [name, id, navigate]);
  return (
    <div className="flex h-full min-h-0 flex-col lg:flex-row" data-testid="session" data-session={id}>
      {tab === "plan" && <h1 className="sr-only lg:hidden">{visible(session?.title || t("New session"))}</h1>}
      <div role="tablist" aria-label={t("Chat or plan")} className="flex border-b border-line lg:hidden">
        {(["chat", "plan"] as const).map((name) => (
          <button key={name} type="button" role="tab" aria-selected={tab === name} className={`min-h-11 flex-1 font-medium ${tab === name ? "border-b-2 border-accent text-ink" : "text-soft"}`} onClick={() => setTab(name)}>
            {name === "chat" ? t("Chat") : t("Plan")}
            {name === "plan" && session?.waiting === "decision" && <span aria-label={t("waits for you")} className="ml-1 text-wait">●</span>}
          </button>
        ))}
      </div>
      <div className={`flex min-h-0 min-w-0 flex-1 flex-col ${tab === "plan" ? "max-lg:hidden" : ""}`}>
        <Head id={id} onPanel={() => setPanel(!panel)} panel={panel} />
        <Chat id={id} onReview={review} empty={<Begin id={id} />} />
        {session?.limit && <div className="px-4 pb-2 md:px-6"><LimitCard id={id} limit={session.limit} decides={me?.decides ?? false} /></div>}
        {!isForeign(id) && <ActivityLine log={log} session={session} />}
        {isForeign(id)
          ? <p className="border-t border-line p-4 text-sm text-soft" data-testid="elsewhere">{t("A foreign agent works here. Speak to it where it runs; its plan is reviewed and decided here.")}</p>
          : <Composer id={id} running={session ? session.turnOpen : false} planning={session?.active ?? false} />}
      </div>
      {(panel || tab === "plan") && (
        <aside aria-label={t("Plan panel")} style={{ "--panel": width ? `${width}px` : undefined } as React.CSSProperties} className={`relative min-h-0 border-line bg-raised lg:w-[var(--panel,22rem)] lg:border-l xl:w-[var(--panel,30rem)] lg:max-w-[calc(100%-380px)] ${tab === "plan" ? "flex-1 lg:flex-none" : "max-lg:hidden"} ${panel ? "" : "lg:hidden"}`}>
          <Edge width={width} onWidth={setWidth} />
          <PlanPanel id={id} onExpand={() => void navigate({ to: "/s/$id/plan", params: { id } })} />
        </aside>
      )}
    </div>
  );
}

/** How wide the panel may be, in pixels; the conversation keeps the rest. */
const [NARROW, WIDE, CONVERSATION] = [300, 1100, 380];

/** The edge of the panel, by which it is made wider or narrower: with a pointer, or with the arrow keys. */
function Edge({ width, onWidth }: { width: number | null; onWidth: (width: number | null) => void }) {
  const edge = useRef<HTMLDivElement>(null);
  const now = () => edge.current?.parentElement?.getBoundingClientRect();
  const set = (wanted: number) => {
    const room = (edge.current?.closest("[data-testid=session]")?.clientWidth ?? WIDE) - CONVERSATION;
    onWidth(Math.round(Math.max(NARROW, Math.min(wanted, WIDE, room))));
  };
  const drag = (event: React.PointerEvent) => {
    event.preventDefault();
    const right = now()?.right ?? 0;
    const target = event.currentTarget as HTMLElement;
    target.setPointerCapture(event.pointerId);
    const move = (moved: PointerEvent) => set(right - moved.clientX);
    target.addEventListener("pointermove", move);
    target.addEventListener("lostpointercapture", () => target.removeEventListener("pointermove", move), { once: true });
  };
  const press = (event: React.KeyboardEvent) => {
    const by = { ArrowLeft: 32, ArrowRight: -32 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    set((now()?.width ?? 0) + by);
  };
  return (
    <div
      ref={edge}
      role="separator"
      aria-orientation="vertical"
      aria-label={t("Width of the plan panel")}
      aria-valuemin={NARROW}
      aria-valuemax={WIDE}
      aria-valuenow={width ?? Math.round(now()?.width ?? 480)}
      tabIndex={0}
      className="absolute inset-y-0 -left-1 z-10 w-2 cursor-col-resize touch-none hover:bg-accent/30 max-lg:hidden"
      onPointerDown={drag}
      onDoubleClick={() => onWidth(null)}
      onKeyDown={press}
    />
  );
}

/** The session's name, and what it costs: this turn, this session, today; and apart from that, how full the context is. */
function Head({ id, onPanel, panel }: { id: string; onPanel: () => void; panel: boolean }) {
  const rows = useQuery(sessionsQuery);
  const control = useQuery(controlQuery(id));
  const { data: usage } = useQuery(usageQuery);
  const { log } = useSession(id);
  const navigate = useNavigate();
  const title = control.data?.title || rows.data?.find((row) => row.sessionId === id)?.title || t("New session");
  const session = control.data;
  const full = session && session.windowTokens ? Math.round(((log?.context ?? 0) / session.windowTokens) * 100) : 0;
  const [name, setName] = useState<string | null>(null);
  return (
    <header className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-2 md:px-6">
      <div className="min-w-0 flex-1 basis-52">
        <h1 className="truncate font-semibold leading-tight">
          <button type="button" className="max-w-full truncate rounded text-left hover:underline" onClick={() => setName(title)} title={t("Rename")}>{visible(title)}</button>
        </h1>
        <dl className="flex flex-wrap gap-x-3 text-xs text-soft" data-testid="cost">
          <Figure name={t("turn")} value={dollars(log?.turn?.cost ?? 0)} />
          <Figure name={t("session")} value={dollars(session?.costMicros ?? 0)} />
          <Figure name={t("today")} value={usage?.money.max ? t("{used} of {max}", { used: dollars(usage.money.used), max: dollars(usage.money.max) }) : dollars(usage?.money.used ?? 0)} warn={isMostUsed(usage?.money)} />
          <Figure name={t("context")} value={`${full} %`} warn={full >= 80} />
        </dl>
      </div>
      <nav aria-label={t("Of this session")} className="flex gap-1">
        <button type="button" className="button quiet small" onClick={() => void navigate({ to: "/s/$id/work", params: { id } })}>{t("Runs")}</button>
        <button type="button" className="button quiet small" onClick={() => void navigate({ to: "/s/$id/notebook", params: { id } })}>{t("Notebook")}</button>
        <button type="button" className="button quiet small" onClick={() => void navigate({ to: "/s/$id/memory", params: { id } })}>{t("Memory")}</button>
        <button type="button" className="button quiet small max-lg:hidden" aria-pressed={panel} onClick={onPanel}>{t("Plan")}</button>
      </nav>
      <Dialog title={t("What is this session called?")} open={name !== null} onClose={() => setName(null)}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (name?.trim()) void verdicts.rename(id, name.trim()).then((came) => came === "done" && setName(null));
          }}
        >
          <input autoFocus className="field" maxLength={200} aria-label={t("Title")} value={name ?? ""} onChange={(event) => setName(event.target.value)} />
          <div className="mt-3 flex justify-end gap-2">
            <button type="button" className="button" onClick={() => setName(null)}>{t("Cancel")}</button>
            <button type="submit" className="button primary" disabled={!name?.trim()}>{t("Rename")}</button>
          </div>
        </form>
      </Dialog>
    </header>
  );
}

function Figure({ name, value, warn = false }: { name: string; value: string; warn?: boolean }) {
  return (
    <div className="flex gap-1">
      <dt>{name}</dt>
      <dd className={`font-mono ${warn ? "font-semibold text-wait" : "text-ink"}`}>{value}</dd>
    </div>
  );
}

/** What to do in a session in which nothing was said: one sentence, and something that runs. */
function Begin({ id }: { id: string }) {
  const model = useQuery(modelQuery);
  const isDemo = model.data?.isDemo ?? false;
  const example = isDemo ? t("Please make a weekly review from my notes.") : t("Look at what is in the workspace, and plan how to put it in order.");
  const begin = async () => {
    if ((await verdicts.on(id, "document")) !== "done") return;
    await got(api.POST("/api/sessions/{id}/messages", { params: inSession(id), body: { text: example } })).catch((problem: Error) => say(problemWords(problem), "bad"));
  };
  return (
    <div className="mx-auto flex max-w-lg flex-col items-center gap-4 px-6 py-14 text-center">
      <h2 className="text-2xl font-semibold">{t("What should be done?")}</h2>
      <p className="text-soft">{t("The agent writes a plan. You read it, comment, and approve exactly what you read; then that runs, and nothing else.")}</p>
      <button type="button" className="card w-full px-4 py-3 text-left hover:bg-sunken" onClick={() => void begin()} data-testid="example">
        <span className="label">{isDemo ? t("Try the demo") : t("For example")}</span>
        <br />
        {example}
      </button>
      <WorksIn id={id} />
    </div>
  );
}

/** Where a session works: a choice before it begins, then a fact. */
function WorksIn({ id }: { id: string }) {
  const roots = useQuery(meQuery).data?.roots ?? [];
  const session = useQuery(controlQuery(id)).data;
  if (!session || roots.length < 2 || isForeign(id)) return null;
  if (session.version > 0) return session.root ? <p className="text-sm text-soft" data-testid="root">{t("Works in {root}", { root: visible(session.root) })}</p> : null;
  return (
    <label className="flex w-full flex-col gap-1 text-left text-sm">
      <span className="label">{t("Works in")}</span>
      <select className="field" data-testid="roots" value={roots[0]} onChange={(event) => void verdicts.open(id, event.target.value)}>
        {roots.map((root) => (
          <option key={root} value={root}>
            {visible(root)}
          </option>
        ))}
      </select>
    </label>
  );
}
