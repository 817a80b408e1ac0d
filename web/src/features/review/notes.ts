import type { CommentRow } from "../../api/client";
import { isRecord } from "../../lib/storage";
import { t } from "../../lib/t";

/** A note that was not sent yet: on some lines, or on the whole. */
export interface Note {
  /** What it is known by while others come and go. */
  id?: string;
  line: number | null;
  /** The last line, where it is about several. */
  last?: number;
  text: string;
  /** The revision it was made on. */
  on: { digest: string; revision: number };
}

/** Whether a stored value is a list of notes. */
export const areNotes = (value: unknown): value is Note[] =>
  Array.isArray(value) && value.every((note) => isRecord(note) && typeof note.text === "string" && isRecord(note.on) && typeof note.on.digest === "string" && typeof note.on.revision === "number" && (note.line === null || typeof note.line === "number") && (note.last === undefined || typeof note.last === "number"));

/** What somebody is about to comment on: these lines, or the whole. */
export interface Writing {
  line: number | null;
  last?: number;
  /** What they have typed. */
  text?: string;
}

/** The line that something about these lines stands below: one with words in it, since nothing is drawn for a blank one. */
export function standsBelow(line: number | null, lines: string[]): number | null {
  if (line === null) return null;
  const has = (at: number) => !!lines[at - 1]?.trim();
  for (let at = Math.min(line, lines.length); at >= 1; at -= 1) if (has(at)) return at;
  const first = lines.findIndex((text) => text.trim());
  return first < 0 ? null : first + 1;
}

/** A note as it is about a revision: one that was made on another revision is about the whole, and says where it was made. */
export function onRevision(note: Note, digest: string): Note {
  if (note.on.digest === digest || note.line === null) return note;
  const { id, line, last, text, on } = note;
  return { id, line: null, text: `${last ? t("Lines {line} to {last} of rev {n}: ", { line, last, n: on.revision }) : t("Line {line} of rev {n}: ", { line, n: on.revision })}${text}`, on };
}

/** The threads of a plan by the line that they stand below; those on the whole are below none. */
export function byLine(threads: CommentRow[], lines: string[]): Map<number | null, CommentRow[]> {
  const places = new Map<number | null, CommentRow[]>();
  for (const thread of threads) {
    const line = standsBelow(thread.place?.lastLine ?? null, lines);
    places.set(line, [...(places.get(line) ?? []), thread]);
  }
  return places;
}

/** Whether somebody has still to do something about a thread. */
export const isOpen = ({ status }: CommentRow): boolean => status === "open" || status === "posted";

/** The words that suggest other lines, in a fence that none of them closes. */
export function suggestion(lines: string[]): string {
  const longest = Math.max(2, ...lines.flatMap((line) => (line.match(/`+/g) ?? []).map((run) => run.length)));
  const fence = "`".repeat(longest + 1);
  return `${fence}suggestion\n${lines.join("\n")}\n${fence}\n`;
}

/** What a comment says, and the lines that it suggests instead, if it does. */
export function readSuggestion(text: string): { words: string; lines: string[] | null } {
  const found = /^(`{3,})suggestion[ \t]*\r?\n(?:([\s\S]*?)\r?\n)??\1[ \t]*$/m.exec(text);
  if (!found) return { words: text, lines: null };
  const words = (text.slice(0, found.index) + text.slice(found.index + found[0].length)).trim();
  return { words, lines: found[2] === undefined ? [] : found[2].split(/\r?\n/) };
}

/** Suggested lines with the numbers that the steps have now. */
export const renumbered = (old: string[], lines: string[]): string[] =>
  lines.map((line, at) => {
    const number = /^\s*(\d{1,3})[.)]\s/.exec(old[at] ?? "")?.[1];
    return number ? line.replace(/^(\s*)\d{1,3}([.)]\s)/, `$1${number}$2`) : line;
  });

/** A document with other lines in the place of these. */
export function replaced(markdown: string, first: number, last: number, lines: string[]): string {
  const all = markdown.split("\n");
  all.splice(first - 1, last - first + 1, ...lines);
  return all.join("\n");
}
