import { ANSWERS_MAX, type CommandAnswer } from "./answers";
import { api, got, inSession, Problem, ticket, type Envelope, type ListChange } from "./client";
import { sessionMoved } from "./intent";
import { listChanged, listsMoved, meQuery, moved, queries } from "./queries";
import { nothing, take, takeAll, withStopped, type Log } from "./reduce";

/** How a session's stream stands. */
export type Link = { state: "loading" | "live" | "reconnecting" | "failed"; since: number; words?: string };
/** What is known of a session's stream. */
export interface Known {
  log: Log | null;
  link: Link;
  /** What commands typed in this page were answered. */
  answers: CommandAnswer[];
}

/** How many events are read at first; older ones when somebody scrolls there. */
const PAGE = 500;
/** How many sessions stay connected after they were looked at. */
const KEPT = 4;

/** One session's stream: read from the journal's end, then followed. It feeds its own session and nothing else. */
class Stream {
  known: Known = { log: null, link: { state: "loading", since: Date.now() }, answers: [] };
  private readonly listeners = new Set<() => void>();
  private socket: WebSocket | null = null;
  private wanted = false;
  private tries = 0;
  private drawing = false;
  private readonly id: string;

  constructor(id: string) {
    this.id = id;
  }

  readonly listen = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly now = () => this.known;

  open(): void {
    if (this.wanted) return;
    this.wanted = true;
    void this.begin();
  }

  close(): void {
    this.wanted = false;
    this.socket?.close();
    this.socket = null;
  }

  /** Shows what a command was answered behind what is there now. */
  answer(line: string, text: string, isRefused: boolean): void {
    const after = this.known.log?.items.at(-1)?.key ?? null;
    const answer = { key: `c${crypto.randomUUID()}`, after, line, text, isRefused };
    this.set({ answers: [...this.known.answers, answer].slice(-ANSWERS_MAX) });
  }

  /** Events before those that are there. */
  async older(): Promise<void> {
    const log = this.known.log;
    if (!log || log.from === 0) return;
    const from = Math.max(0, log.from - PAGE);
    const events = await this.read(from, log.to);
    const again = takeAll(nothing(this.id, from), events);
    const now = this.known.log;
    if (now && now.from === log.from) {
      const later = now.to > again.to ? await this.read(again.to, now.to) : [];
      this.set({ log: withStopped(takeAll(again, later), now) });
    }
  }

  private async read(after: number, to: number): Promise<Envelope[]> {
    const events: Envelope[] = [];
    while (after < to) {
      const page = await got(api.GET("/api/sessions/{id}/events", { params: { ...inSession(this.id), query: { after, limit: PAGE } } }));
      if (page.length === 0) break;
      events.push(...(page as Envelope[]));
      after = page[page.length - 1]?.seq ?? to;
    }
    return events.filter((event) => (event.seq ?? 0) <= to);
  }

  private async begin(): Promise<void> {
    try {
      if (!this.known.log) {
        const session = await got(api.GET("/api/sessions/{id}", { params: inSession(this.id) }));
        const from = Math.max(0, session.version - PAGE);
        this.set({ log: takeAll(nothing(this.id, from), await this.read(from, session.version)) });
      }
      const opened = await ticket();
      if (this.wanted && !this.socket) this.connect(opened);
    } catch (problem) {
      if (problem instanceof Problem && problem.status === 401) void queries.invalidateQueries(meQuery);
      const words = problem instanceof Error ? problem.message : String(problem);
      this.set({ link: { state: "failed", since: Date.now(), words } });
      this.retry();
    }
  }

  private connect(opened: string): void {
    const log = this.known.log;
    if (!log) return;
    const place = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/ws`;
    const socket = new WebSocket(`${place}?sessionId=${encodeURIComponent(this.id)}&after=${log.to}&ticket=${opened}`);
    this.socket = socket;
    socket.onopen = () => {
      this.tries = 0;
      this.set({ link: { state: "live", since: Date.now() } });
    };
    socket.onmessage = (message) => {
      if (this.socket === socket) this.receive(JSON.parse(String(message.data)) as Envelope);
    };
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.socket = null;
      if (this.known.link.state === "live") this.set({ link: { state: "reconnecting", since: Date.now() } });
      this.retry();
    };
  }

  private retry(): void {
    if (!this.wanted) return;
    const wait = Math.min(5_000, 150 * 2 ** this.tries++);
    setTimeout(() => {
      if (this.wanted && !this.socket) void this.begin();
    }, wait);
  }

  private receive(envelope: Envelope): void {
    const log = this.known.log;
    if (!log) return;
    const next = take(log, envelope);
    if (next === log) return;
    this.known = { ...this.known, log: next };
    this.draw();
    if (envelope.seq != null) {
      sessionMoved(this.id);
      moved(this.id);
    }
  }

  private set(part: Partial<Known>): void {
    this.known = { ...this.known, ...part };
    this.draw();
  }

  /** Watchers are told at most once a frame. */
  private draw(): void {
    if (this.drawing) return;
    this.drawing = true;
    const tell = () => {
      this.drawing = false;
      for (const listener of this.listeners) listener();
    };
    if (document.hidden) setTimeout(tell, 50);
    else requestAnimationFrame(tell);
  }
}

const streams = new Map<string, Stream>();
let recent: string[] = [];

/** The stream of this session, connected; those that nobody looked at lately are let go. */
export function streamOf(id: string): Stream {
  let stream = streams.get(id);
  if (!stream) {
    stream = new Stream(id);
    streams.set(id, stream);
  }
  recent = [id, ...recent.filter((other) => other !== id)];
  for (const other of recent.slice(KEPT)) streams.get(other)?.close();
  for (const other of recent.slice(24)) streams.delete(other);
  recent = recent.slice(0, 24);
  stream.open();
  return stream;
}

/** How long until hints are asked for again after they broke off. */
const HINTS_AGAIN_MS = 2_000;

/** Hears what changes in lists and badges. */
export function hearHints(): () => void {
  let source: EventSource | null = null;
  let timer = 0;
  let wanted = true;
  const one = (message: MessageEvent) => {
    const change = JSON.parse(String(message.data)) as ListChange;
    sessionMoved(change.row.sessionId);
    moved(change.row.sessionId);
    listChanged(change);
  };
  const again = () => {
    source?.close();
    if (wanted) timer = window.setTimeout(() => void open(), HINTS_AGAIN_MS);
  };
  // A ticket opens one stream: the browser's own way to come back would bring the one that was used.
  const open = async () => {
    try {
      const opened = await ticket();
      if (!wanted) return;
      source = new EventSource(`/api/hints?ticket=${opened}`);
      source.addEventListener("changed", one);
      source.addEventListener("missed", listsMoved);
      source.addEventListener("error", again);
    } catch {
      again();
    }
  };
  void open();
  return () => {
    wanted = false;
    window.clearTimeout(timer);
    source?.close();
  };
}
