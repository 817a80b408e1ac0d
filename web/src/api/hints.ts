import { ticket, type ListChange } from "./client";
import { sessionMoved } from "./intent";
import { listChanged, listsMoved, moved } from "./queries";

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
