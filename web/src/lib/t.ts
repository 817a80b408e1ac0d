/** Every word that a person reads passes here: a catalogue of another language is one more object. */
const catalogue: Record<string, string> = {};

/** The text in the reader's language; `{name}` stands for a value. */
export function t(text: string, values: Record<string, string | number> = {}): string {
  const found = catalogue[text] ?? text;
  return found.replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? String(values[name]) : whole));
}

/** "1 step", "2 steps". */
export function many(count: number, one: string, more: string): string {
  return `${count} ${count === 1 ? t(one) : t(more)}`;
}

/** Dollars, with as many places as it takes to see something. */
export function dollars(micros: number): string {
  const value = micros / 1e6;
  if (value === 0) return "$0";
  return `$${value < 0.01 ? value.toFixed(4) : value.toFixed(2)}`;
}

/** "0.2 s", "2 m 5 s", "3 h 4 m". */
export function lasting(millis: number): string {
  const seconds = Math.max(0, millis) / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

/** "now", "4 m", "3 h", "2 d". */
export function ago(time: string | number, now = Date.now()): string {
  const minutes = Math.floor((now - new Date(time).getTime()) / 60_000);
  if (minutes < 1) return t("now");
  if (minutes < 60) return `${minutes} m`;
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h`;
  return `${Math.floor(minutes / 1440)} d`;
}

/** "14:02". */
export function clock(time: string | number): string {
  return new Date(time).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
}

/** Characters that hide or reorder others are spelled out, so that what is read is what is there. */
export function visible(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g,
    (hidden) => `⟦U+${(hidden.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟧`,
  );
}
