import type { Entry } from "./entries";

/** What a command was answered, where it was typed. It is in no journal: it lives as long as the page. */
export interface CommandAnswer {
  key: string;
  /** The entry that it stands behind; none, if it was the first thing. */
  after: string | null;
  line: string;
  text: string;
  isRefused: boolean;
}

/** How many answers a page keeps; the oldest go first. */
export const ANSWERS_MAX = 100;

/** The conversation with the answers in their places. What an answer stood behind may be gone; then it comes last. */
export function withAnswers(entries: Entry[], answers: CommandAnswer[]): Entry[] {
  if (answers.length === 0) return entries;
  const waiting = new Map<string | null, Entry[]>();
  for (const { key, after, line, text, isRefused } of answers) {
    waiting.set(after, [...(waiting.get(after) ?? []), { kind: "command", key, line, text, isRefused }]);
  }
  const taken = (after: string | null) => {
    const found = waiting.get(after) ?? [];
    waiting.delete(after);
    return found;
  };
  const merged = [...taken(null), ...entries.flatMap((entry) => [entry, ...taken(entry.key)])];
  return [...merged, ...[...waiting.values()].flat()];
}
