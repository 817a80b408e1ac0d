import { useSyncExternalStore } from "react";
import { api, got, inSession, Problem, ticket, type Envelope } from "../api/client";
import { sessionMoved } from "../api/intent";
import { meQuery, moved, queries } from "../api/queries";
import { ANSWERS_MAX, type CommandAnswer } from "./answers";
import { SessionLog } from "./log";

/** How a session's stream stands. */
export type Link = { state: "loading" | "live" | "reconnecting" | "failed"; since: number; words?: string };
/** What is known of a session's stream. It is a new one whenever anything in it changed, its log too. */
export interface Known {
  log: SessionLog | null;
  link: Link;
  /** What commands typed in this page were answered. */
  answers: CommandAnswer[];
}

/** How many events are read at first; older ones when somebody scrolls there. */
const PAGE = 500;
/** How many sessions stay connected after they were looked at, and of how many it is kept what is known of them. */
const CONNECTED = 4;
const KNOWN = 24;

/** One session's stream: read from the journal's end, then followed while somebody looks. It feeds its own session and nothing else. */
class SessionStore {
  private known: Known = { log: null, link: { state: "loading", since: Date.now() }, answers: [] };
  private readonly listeners = new Set<() => void>();
  private socket: WebSocket | null = null;
  /** Counts how often it was opened and closed: what began in an earlier life does nothing in this one. */
  private life = 0;
  private isOpen = false;
  private tries = 0;
  private isDrawing = false;
  private isReading = false;

  constructor(readonly id: string) {}

  readonly listen = (listener: () => void) => {
    this.listeners.add(listener);
    this.open();
    lookedAt(this);
    return () => void this.listeners.delete(listener);
  };

  readonly now = () => this.known;

  get isWatched(): boolean {
    return this.listeners.size > 0;
  }

  private open(): void {
    if (this.isOpen) return;
    this.isOpen = true;
    void this.begin(++this.life);
  }

  close(): void {
    this.isOpen = false;
    this.life += 1;
    this.socket?.close();
    this.socket = null;
  }

  /** Shows what a command was answered behind what is there now. */
  answer(line: string, text: string, isRefused: boolean): void {
    const after = this.known.log?.entries.at(-1)?.key ?? null;
    const answer = { key: `c${crypto.randomUUID()}`, after, line, text, isRefused };
    this.set({ answers: [...this.known.answers, answer].slice(-ANSWERS_MAX) });
  }

  /** Reads the events before those that are there. */
  async older(): Promise<void> {
    const log = this.known.log;
    if (!log || log.from === 0 || this.isReading) return;
    this.isReading = true;
    try {
      const from = Math.max(0, log.from - PAGE);
      log.prepend(new SessionLog(this.id, from).takeAll(await this.read(from, log.from)));
      this.set({});
    } finally {
      this.isReading = false;
    }
  }

  private async read(after: number, to: number): Promise<Envelope[]> {
    const events: Envelope[] = [];
    while (after < to) {
      const query = { after, limit: Math.min(PAGE, to - after) };
      const page = await got(api.GET("/api/sessions/{id}/events", { params: { ...inSession(this.id), query } }));
      if (page.length === 0) break;
      events.push(...(page as Envelope[]));
      after = page[page.length - 1]?.seq ?? to;
    }
    return events;
  }

  private async begin(life: number): Promise<void> {
    try {
      if (!this.known.log) {
        const session = await got(api.GET("/api/sessions/{id}", { params: inSession(this.id) }));
        const from = Math.max(0, session.version - PAGE);
        const log = new SessionLog(this.id, from).takeAll(await this.read(from, session.version));
        if (this.life !== life) return;
        this.set({ log });
      }
      const opened = await ticket();
      if (this.life === life && !this.socket) this.connect(opened, life);
    } catch (problem) {
      if (this.life !== life) return;
      if (problem instanceof Problem && problem.status === 401) void queries.invalidateQueries(meQuery);
      const words = problem instanceof Error ? problem.message : String(problem);
      this.set({ link: { state: "failed", since: Date.now(), words } });
      this.retry(life);
    }
  }

  private connect(opened: string, life: number): void {
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
      this.retry(life);
    };
  }

  private retry(life: number): void {
    if (this.life !== life) return;
    const wait = Math.min(5_000, 150 * 2 ** this.tries++);
    setTimeout(() => {
      if (this.life === life && !this.socket) void this.begin(life);
    }, wait);
  }

  private receive(envelope: Envelope): void {
    if (!this.known.log?.take(envelope)) return;
    this.set({});
    if (envelope.seq != null) {
      sessionMoved(this.id);
      moved(this.id);
    }
  }

  /** Watchers are told at most once a frame. */
  private set(part: Partial<Known>): void {
    this.known = { ...this.known, ...part };
    if (this.isDrawing) return;
    this.isDrawing = true;
    const tell = () => {
      this.isDrawing = false;
      for (const listener of this.listeners) listener();
    };
    if (document.hidden) setTimeout(tell, 50);
    else requestAnimationFrame(tell);
  }
}

const stores = new Map<string, SessionStore>();
/** The sessions that were looked at, the latest first. */
let recent: SessionStore[] = [];

/** Lets those go that nobody looked at lately: first their connection, then what is known of them. */
function lookedAt(store: SessionStore): void {
  recent = [store, ...recent.filter((other) => other !== store)];
  const idle = recent.slice(CONNECTED).filter((other) => !other.isWatched);
  idle.forEach((other) => other.close());
  for (const other of idle.filter((other) => recent.indexOf(other) >= KNOWN)) stores.delete(other.id);
  recent = recent.filter((other) => stores.get(other.id) === other);
}

/** The stream of this session. It is connected once somebody listens. */
export function storeOf(id: string): SessionStore {
  let store = stores.get(id);
  if (!store) {
    store = new SessionStore(id);
    stores.set(id, store);
  }
  return store;
}

/** What is known of this session's stream, followed as long as the component is there. */
export function useSession(id: string): Known {
  const store = storeOf(id);
  return useSyncExternalStore(store.listen, store.now);
}
