import type { Piece } from "../../lib/difference";
import { visible } from "../../lib/t";

/** A line that was changed, with what only this side of it has. */
export function Words({ pieces, change }: { pieces: Piece[]; change?: string }) {
  const Mark = change === "removed" ? "del" : "ins";
  return pieces.map(({ text, isOther }, at) => (isOther ? <Mark key={at} className={`rounded-sm no-underline ${change === "removed" ? "bg-bad/25" : "bg-good/25"}`}>{visible(text)}</Mark> : <span key={at}>{visible(text)}</span>));
}
