/** How long changes are gathered before they are read. */
const GATHER_MS = 30;

interface Reread {
  isReading: boolean;
  changedMeanwhile: boolean;
}

/**
 * Calls `read` soon after a change, and never twice at a time for one key. What changes while it reads is read once more afterwards:
 * a session that changes all the time can neither put a read off nor cancel it again and again.
 */
export function rereader(read: (key: string) => Promise<unknown>): (key: string) => void {
  const open = new Map<string, Reread>();
  const begin = (key: string) => {
    const one: Reread = { isReading: false, changedMeanwhile: false };
    open.set(key, one);
    setTimeout(() => {
      one.isReading = true;
      const end = () => {
        open.delete(key);
        if (one.changedMeanwhile) begin(key);
      };
      void read(key).then(end, end);
    }, GATHER_MS);
  };
  return (key) => {
    const one = open.get(key);
    if (!one) begin(key);
    else if (one.isReading) one.changedMeanwhile = true;
  };
}
