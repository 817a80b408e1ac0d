// A browser: Debian's chromium, headless, with a fresh profile, and nothing but this machine to talk to.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { chromium } from "playwright-core";

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export async function openBrowser() {
  const executablePath = process.env.CHROMIUM ?? execFileSync("which", ["chromium"], { encoding: "utf8" }).trim();
  return chromium.launch({ executablePath, args: FLAGS });
}

/** Gives the page another dashboard than the server's: a mutant. The policy stays the server's. */
async function instead(page, folder) {
  await page.route((url) => !url.pathname.startsWith("/api/"), async (route) => {
    const { pathname } = new URL(route.request().url());
    const path = join(folder, /\.\w+$/.test(pathname) ? pathname : "index.html");
    await route.fulfill({ path });
  });
}

/** A page of a fresh profile, which fails the test on any error, violation of the policy, or request elsewhere. */
export async function openPage(browser, base, { width = 1280, height = 800, theme = "light", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    const text = message.text();
    const expected = /Failed to load resource|WebSocket connection|ERR_|net::/.test(text);
    if (message.type() === "error" && !expected) faults.push(`console: ${text}`);
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (!["data:", "blob:"].includes(url.protocol) && url.origin !== new URL(base).origin) faults.push(`foreign: ${request.url()}`);
  });
  if (process.env.PLANWRIGHT_DASHBOARD) await instead(page, process.env.PLANWRIGHT_DASHBOARD);
  page.faults = faults;
  page.setDefaultTimeout(10_000);
  return page;
}
