import { readText, writeText } from "./storage";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

/** How the page looks: as this person chose, or as the system does. */
export function chosenTheme(): Theme {
  const kept = readText("theme");
  return kept === "light" || kept === "dark" ? kept : "system";
}

/** Draws the page so. */
export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** The same, from now on. */
export function chooseTheme(theme: Theme): void {
  writeText("theme", theme === "system" ? null : theme);
  applyTheme(theme);
}
