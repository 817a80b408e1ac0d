import type { Envelope, Schemas } from "../api/client";

/** The events of these types. */
type Of<Type extends Envelope["type"]> = Extract<Envelope, { type: Type }>;

/** The events that a conversation tells of in a line. What the line says is made when it is drawn. */
export const NOTED = [
  "view_reset", "notebook_switched", "session_renamed",
  "turn_paused", "turn_resumed", "limit_warned", "model_call_failed", "model_call_orphaned", "view_compacted", "permission_decided", "turn_finished",
  "plan_started", "changes_requested", "plan_approved", "decision_expired", "decision_reminded", "execution_started", "step_begun", "step_ended", "execution_paused", "plan_failed", "plan_ended",
  "goal_added", "task_added", "task_ended", "goal_ended", "run_started", "run_warned", "run_paused", "run_resumed", "run_ended", "schedule_added", "slots_missed", "schedule_ended",
] as const satisfies readonly Envelope["type"][];
export type NoteEvent = Of<(typeof NOTED)[number]>;

export type CallState = "asked" | "running" | "done" | "failed" | "doubt" | "refused" | "waiting";
/** What a call came to: its output, what answered in its place, or what a person found. */
export type CallResult =
  | { kind: "output"; text: string }
  | { kind: "reply"; reply: Schemas["event.ToolReply"] }
  | { kind: "settled"; happened: boolean };
export type Observation = Schemas["event.Observation"];
/** Who says that a plan is done: the record, a model's report, or a person. */
export type Basis = Schemas["event.Basis"];

export interface MessageEntry { kind: "message"; key: string; seq: number; at: string; by: string; text: string; isWaiting: boolean; withdrawn?: string }
export interface AnswerEntry { kind: "answer"; key: string; turn: string; at: string; text: string; bytes: number; isLive: boolean; isStopped?: boolean }
export interface CallEntry { kind: "call"; key: string; at: string; agent?: string; tool: string; arguments: string; state: CallState; result?: CallResult; begun?: string; ended?: string; step?: number; changes?: Schemas["event.FileChange"][] }
export interface RevisionEntry { kind: "revision"; key: string; at: string; number: number; title: string; digest: string; plan: string; isByPerson: boolean }
export interface NoteEntry { kind: "note"; key: string; at: string; event: NoteEvent }
/** What a command was answered. It is in no journal. */
export interface CommandEntry { kind: "command"; key: string; line: string; text: string; isRefused: boolean }

/** One thing in a conversation. */
export type Entry = MessageEntry | AnswerEntry | CallEntry | RevisionEntry | NoteEntry | CommandEntry;
