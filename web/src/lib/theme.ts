import { useSyncExternalStore } from "react";
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

const dark = () => window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : dark().matches;
};
const watchTheme = (changed: () => void) => {
  const chosen = new MutationObserver(changed);
  chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const system = dark();
  system.addEventListener("change", changed);
  return () => {
    chosen.disconnect();
    system.removeEventListener("change", changed);
  };
};

/** Whether the page is dark now, by the person's choice or by the system's. */
export const useIsDark = (): boolean => useSyncExternalStore(watchTheme, isDark);
