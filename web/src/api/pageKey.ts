import { readText, writeText } from "../lib/storage";

/** The header in which this page sends its key. */
export const PAGE_KEY = "Planwright-Page-Key";

/** The key that the login of this browser was given. The cookie goes to every port of this host; what is kept here, to this origin alone. */
export const pageKey = () => readText("page-key");

/** Keeps the key, or forgets it; whether this browser keeps what a page gives it. */
export function keepPageKey(key: string | null): boolean {
  writeText("page-key", key);
  return pageKey() === key;
}
