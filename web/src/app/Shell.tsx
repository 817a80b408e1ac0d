import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { api, got, Problem, type SessionRow } from "../api/client";
import { approvalsQuery, foundSessionsQuery, meQuery, modelQuery, sessionsQuery } from "../api/queries";
import { sidebarRows } from "./sidebar";
import { hearHints } from "../api/hints";
import { Approvals, useWaiting } from "../features/inbox/Approvals";
import { t, visible } from "../lib/t";
import { PassphraseAgain } from "../features/common/PassphraseAgain";
import { Dialog } from "../ui/Dialog";
import { Ago } from "../ui/Time";
import { inText, say, Skeleton, Toasts, useSettled } from "../ui/basics";

/** What a session asks of its reader: needs you, runs, or rests. */
export function stateOf(row: SessionRow): { sign: string; tone: string; words: string } {
  if (row.waiting || row.parked) return { sign: "●", tone: "text-wait", words: t("needs you") };
  if (row.running) return { sign: "◐", tone: "text-accent breathing", words: t("running") };
  return { sign: "○", tone: "text-soft", words: t("idle") };
}

/** Opens a new session. */
export function useNewSession(): () => Promise<void> {
  const navigate = useNavigate();
  return async () => {
    try {
      const made = await got(api.POST("/api/sessions", { body: {} }));
      await navigate({ to: "/s/$id", params: { id: made.sessionId } });
    } catch (problem) {
      say(problem instanceof Error ? problem.message : String(problem), "bad");
    }
  };
}

/** What is around every screen: the sessions, what waits, and how to get anywhere. */
export function Shell() {
  const me = useQuery(meQuery);
  const rows = useQuery(sessionsQuery);
  const model = useQuery(modelQuery);
  const { shown: waiting } = useWaiting();
  const navigate = useNavigate();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  const [drawer, setDrawer] = useState(false);
  const create = useNewSession();
  const approvals = useQuery(approvalsQuery);
  const open = sidebarRows(rows.data ?? [], approvals.data ?? []);
  useEffect(() => (me.data ? hearHints() : undefined), [me.data?.grant]);
  useEffect(() => {
    // The router may be on its way to the login already.
    if (me.error instanceof Problem && me.error.status === 401 && !path.startsWith("/login")) void navigate({ to: "/login", search: { back: path } as never });
  }, [me.error, navigate, path]);
  useEffect(() => {
    document.title = waiting.length ? `(${waiting.length}) Planwright` : "Planwright";
  }, [waiting.length]);
  const keys = useRef({ open, create });
  keys.current = { open, create };
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const command = event.metaKey || event.ctrlKey;
      if (command && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setPalette(true);
      } else if (command && /^[1-9]$/.test(event.key)) {
        const row = keys.current.open[Number(event.key) - 1];
        if (row) {
          event.preventDefault();
          void navigate({ to: "/s/$id", params: { id: row.sessionId } });
        }
      } else if (event.key === "n" && event.altKey) {
        event.preventDefault();
        void keys.current.create();
      } else if (event.key === "?" && !inText(event) && !document.querySelector("dialog[open]")) {
        event.preventDefault();
        setHelp(true);
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [navigate]);
  if (me.isPending || me.error) return <Skeleton lines={3} />;
  return (
    <div className="flex h-dvh flex-col md:flex-row">
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-raised focus:p-2">{t("To the content")}</a>
      <nav aria-label={t("Sessions")} className="hidden w-64 shrink-0 flex-col border-r border-line bg-sunken md:flex">
        <div className="flex items-center gap-2 px-4 py-3">
          <img src="/mark.svg" alt="" width="22" height="22" />
          <Link to="/" className="flex-1 font-semibold">planwright</Link>
          <button type="button" className="button quiet small" onClick={() => setPalette(true)} aria-label={t("Find anything")}><kbd className="font-mono text-xs">⌘K</kbd></button>
        </div>
        <button type="button" className="mx-2 flex items-center justify-between rounded-lg px-3 py-2 text-left font-medium hover:bg-raised" aria-expanded={drawer} onClick={() => setDrawer(!drawer)} data-testid="approvals-button">
          {t("Approvals")} {waiting.length > 0 && <span className="rounded-full bg-wait px-2 text-xs font-bold text-ground" data-testid="badge" aria-label={t("{n} wait for you", { n: waiting.length })}>{waiting.length}</span>}
        </button>
        <ul className="min-h-0 flex-1 space-y-0.5 overflow-y-auto px-2 py-2" data-testid="session-list">
          {open.map((row) => {
            const state = stateOf(row);
            const is = path === `/s/${encodeURIComponent(row.sessionId)}` || path.startsWith(`/s/${row.sessionId}`) || path.startsWith(`/s/${encodeURIComponent(row.sessionId)}/`);
            return (
              <li key={row.sessionId}>
                <Link to="/s/$id" params={{ id: row.sessionId }} aria-current={is ? "page" : undefined} className={`flex items-center gap-2 rounded-lg px-3 py-2 ${is ? "bg-raised font-medium shadow-sm" : "hover:bg-raised"}`} data-state={state.words}>
                  <span aria-hidden="true" className={state.tone}>{state.sign}</span>
                  <span className="min-w-0 flex-1 truncate">{visible(row.title || t("Untitled"))}</span>
                  <span className={`text-xs ${row.waiting ? "font-semibold text-wait" : "text-soft"}`}>{row.waiting ? state.words : row.running ? state.words : <Ago at={row.updated} />}</span>
                </Link>
              </li>
            );
          })}
        </ul>
        <div className="space-y-1 border-t border-line p-2">
          <button type="button" className="button w-full" onClick={() => void create()}>{t("+ New session")}</button>
          <div className="flex text-sm">
            <Link to="/sessions" className="button quiet small flex-1">{t("Sessions")}</Link>
            <Link to="/settings" className="button quiet small flex-1">{t("Settings")}</Link>
          </div>
          {model.data && <p className="truncate px-2 text-xs text-soft" title={model.data.name}>{model.data.isDemo ? t("Demo, no network") : model.data.name}</p>}
        </div>
      </nav>
      <header className="flex items-center gap-2 border-b border-line bg-sunken px-3 py-2 md:hidden">
        <img src="/mark.svg" alt="" width="22" height="22" />
        <select className="field !py-1" aria-label={t("Session")} value={open.find((row) => path.split("/").some((part) => decodeURIComponent(part) === row.sessionId))?.sessionId ?? ""} onChange={(event) => event.target.value && void navigate({ to: "/s/$id", params: { id: event.target.value } })}>
          <option value="">{t("Sessions…")}</option>
          {open.map((row) => <option key={row.sessionId} value={row.sessionId}>{`${stateOf(row).sign} ${visible(row.title || t("Untitled"))}`}</option>)}
        </select>
        <button type="button" className="button small" onClick={() => void create()} aria-label={t("New session")}>+</button>
      </header>
      <div className="flex min-h-0 min-w-0 flex-1 flex-col">
        <PassphraseAgain />
        {me.data.notice && <p role="status" className="border-b border-line bg-sunken px-4 py-2 text-sm font-medium text-wait" data-testid="notice">{visible(me.data.notice)}</p>}
        <main id="main" className="relative min-h-0 min-w-0 flex-1 overflow-y-auto"><Outlet /></main>
      </div>
      {drawer && (
        <aside aria-label={t("Approvals")} className="fixed inset-y-0 left-64 z-30 hidden w-[30rem] overflow-y-auto border-r border-line bg-ground shadow-2xl md:block">
          <button type="button" className="button quiet small absolute right-3 top-3" aria-label={t("Close")} onClick={() => setDrawer(false)}>✕</button>
          <Approvals onPick={() => setDrawer(false)} />
        </aside>
      )}
      <nav aria-label={t("Main")} className="flex border-t border-line bg-sunken md:hidden">
        {[["/", t("Chat")], ["/approvals", t("Approvals")], ["/sessions", t("Sessions")], ["/settings", t("Settings")]].map(([to = "/", words]) => (
          <Link key={to} to={to} className="flex min-h-12 flex-1 items-center justify-center gap-1 text-sm font-medium text-soft" activeProps={{ className: "!text-accent" }} activeOptions={{ exact: true }}>
            {words}
            {to === "/approvals" && waiting.length > 0 && <span className="rounded-full bg-wait px-1.5 text-xs font-bold text-ground">{waiting.length}</span>}
          </Link>
        ))}
      </nav>
      {palette && <Palette rows={rows.data ?? []} onClose={() => setPalette(false)} create={create} />}
      <KeyHelp open={help} onClose={() => setHelp(false)} />
      <Toasts />
    </div>
  );
}

/** Every key, and where it works. */
function KeyHelp({ open, onClose }: { open: boolean; onClose: () => void }) {
  const groups: [string, [string, string][]][] = [
    [t("Everywhere"), [["Ctrl K / ⌘K", t("find a session, or where to go")], ["Ctrl 1–9 / ⌘1–9", t("go to a session of the sidebar")], ["Alt N", t("new session")], ["?", t("this help")]]],
    [t("Conversation"), [["Enter", t("send")], ["Shift Enter", t("new line")], ["P", t("show or hide the plan")]]],
    [t("Review"), [["J / K", t("next, previous line")], ["C", t("comment on the line that has the focus, or on the plan")], ["X", t("drop the step that has the focus")], ["D", t("changes or plan")], ["Ctrl Enter / ⌘Enter", t("send notes")], ["Shift A", t("approve, on the review's own page")], ["A", t("approve, in the panel beside the conversation")]]],
    [t("Timeline"), [["E", t("next error")], ["F", t("from the start")], ["L", t("follow what happens")]]],
  ];
  return (
    <Dialog title={t("Keys")} open={open} onClose={onClose}>
      <div className="space-y-3 text-sm" data-testid="key-help">
        {groups.map(([name, keys]) => (
          <section key={name}>
            <h3 className="label">{name}</h3>
            <dl className="mt-1 grid grid-cols-[9rem_1fr] gap-x-3 gap-y-1">
              {keys.map(([key, words]) => <div key={key} className="contents"><dt className="font-mono">{key}</dt><dd>{words}</dd></div>)}
            </dl>
          </section>
        ))}
        <button type="button" className="button w-full" autoFocus onClick={onClose}>{t("Close")}</button>
      </div>
    </Dialog>
  );
}

/** How many results the palette shows. */
const FOUND_MAX = 12;

/** Anything, by its name. */
function Palette({ rows, onClose, create }: { rows: SessionRow[]; onClose: () => void; create: () => Promise<void> }) {
  const navigate = useNavigate();
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  const search = useSettled(words.trim(), 120);
  const onServer = useQuery(foundSessionsQuery(search, FOUND_MAX));
  const fits = (name: string) => name.toLowerCase().includes(words.trim().toLowerCase());
  // What the server found; until it has answered, what is at hand.
  const sessions = (search === words.trim() && onServer.data) || rows.filter((row) => fits(row.title || row.sessionId));
  const places = [
    { name: t("New session"), note: "⌥N", go: () => void create() },
    { name: t("Approvals"), note: "", go: () => void navigate({ to: "/approvals" }) },
    { name: t("Sessions"), note: "", go: () => void navigate({ to: "/sessions" }) },
    { name: t("Settings"), note: "", go: () => void navigate({ to: "/settings" }) },
  ];
  const found: { name: string; note: string; go: () => void }[] = [
    ...places.filter((entry) => fits(entry.name)),
    ...sessions.map((row) => ({ name: row.title || row.sessionId, note: stateOf(row).words, go: () => void navigate({ to: "/s/$id", params: { id: row.sessionId } }) })),
  ].slice(0, FOUND_MAX);
  const go = (place: number) => {
    found[place]?.go();
    onClose();
  };
  return (
    <dialog ref={box} aria-label={t("Find anything")} onClose={onClose} onClick={(event) => event.target === box.current && onClose()} className="card mt-[12vh] w-[94vw] max-w-lg p-0 shadow-2xl">
      <input
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`palette-${at}`}
        aria-label={t("Find anything")}
        className="w-full border-b border-line bg-transparent px-4 py-3 outline-none"
        placeholder={t("A session, or where to go")}
        value={words}
        onChange={(event) => {
          setWords(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setAt(Math.min(found.length - 1, at + 1));
          else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
          else if (event.key === "Enter") go(at);
          else return;
          event.preventDefault();
        }}
      />
      <ul id="palette-list" role="listbox" aria-label={t("Found")} className="max-h-80 overflow-y-auto p-2">
        {found.map((entry, place) => (
          <li key={place} id={`palette-${place}`} role="option" aria-selected={place === at} className={`flex cursor-pointer justify-between rounded-lg px-3 py-2 ${place === at ? "bg-tint" : ""}`} onMouseEnter={() => setAt(place)} onClick={() => go(place)}>
            <span className="truncate">{visible(entry.name)}</span>
            <span className="text-sm text-soft">{entry.note}</span>
          </li>
        ))}
      </ul>
    </dialog>
  );
}
