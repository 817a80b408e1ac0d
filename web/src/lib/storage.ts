/** What this browser keeps for the page. Storage may be refused, full, or hold what another version wrote: none of that may break the page. */
export function readText(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Writes a value; an empty one, or none, removes it. */
export function writeText(key: string, value: string | null): void {
  try {
    if (value) localStorage.setItem(key, value);
    else localStorage.removeItem(key);
  } catch {
    // The page goes on without it.
  }
}

/** The JSON in a text, if it is what the reader expects; else nothing. */
export function parseJson<T>(text: string | null, isValid: (value: unknown) => value is T): T | null {
  if (text === null) return null;
  try {
    const value = JSON.parse(text) as unknown;
    return isValid(value) ? value : null;
  } catch {
    return null;
  }
}

/** A stored JSON value. What does not fit is removed, so that it is met once. */
export function readJson<T>(key: string, isValid: (value: unknown) => value is T): T | null {
  const text = readText(key);
  const value = parseJson(text, isValid);
  if (text !== null && value === null) writeText(key, null);
  return value;
}

export const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);
