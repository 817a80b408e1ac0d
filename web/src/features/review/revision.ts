/** A revision by what names it. */
export interface RevisionRef {
  plan: string;
  revision: number;
  digest: string;
}

/** Which revision is on the screen, and which is the newest. */
export interface Reading {
  /** The one that is on the screen: title, digest, status and text are this one's. */
  shown: RevisionRef | null;
  newest: RevisionRef | null;
  /** Whether what is on the screen waited for a decision when it was last the newest. */
  waited: boolean;
  /** The digest of the revision for which this person asked something newer. */
  expects: string | null;
  /** The next one is to be shown at once: the server said that it is there. */
  jumps: boolean;
  /** What this person tried to do to a revision that was replaced. */
  refused: { what: string; revision: number } | null;
}

export type ReadingEvent =
  | { type: "arrived"; newest: RevisionRef | null; waits: boolean }
  | { type: "expected" }
  | { type: "advanced" }
  | { type: "refused"; what: string };

export const nothingRead: Reading = { shown: null, newest: null, waited: false, expects: null, jumps: false, refused: null };

/** A newer revision does not slide in under a person who is about to decide. */
export function read(reading: Reading, event: ReadingEvent): Reading {
  const { shown, newest } = reading;
  switch (event.type) {
    case "arrived": {
      const next = event.newest;
      if (!next) return nothingRead;
      if (shown?.digest === next.digest) return { ...reading, newest: next, waited: event.waits };
      const isOther = shown?.plan !== next.plan;
      const asked = reading.expects !== null && reading.expects === shown?.digest;
      if (!isOther && reading.waited && !asked && !reading.jumps) return { ...reading, newest: next };
      const refused = reading.jumps && !isOther ? reading.refused : null;
      return { ...nothingRead, shown: next, newest: next, waited: event.waits, refused };
    }
    case "expected":
      return { ...reading, expects: shown?.digest ?? null };
    case "advanced":
      return { ...nothingRead, shown: newest, newest, waited: true };
    case "refused": {
      const refused = shown && { what: event.what, revision: shown.revision };
      if (shown?.digest === newest?.digest) return { ...reading, refused, jumps: true };
      return { ...nothingRead, shown: newest, newest, waited: true, refused };
    }
  }
}

/** Whether what is on the screen is the newest. */
export const isNewest = (reading: Reading): boolean => reading.shown?.digest === reading.newest?.digest;
