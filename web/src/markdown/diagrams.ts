import { t } from "../lib/t";

/** A diagram as the address of an image, or why there is none. */
export type Drawn = { image: string } | { why: string };

/** A text can be made so that drawing it never ends, or ends in something that no page can show. */
const [WITHIN_MS, SVG_MAX] = [15_000, 2_000_000];

type Ask = (code: string, isDark: boolean) => Promise<Drawn>;

let frame: { ready: Promise<Ask>; close: () => void } | null = null;
let last: Promise<unknown> = Promise.resolve();

/** Draws a diagram, if it is still wanted when its turn comes, in a frame that belongs to no site: whatever its text makes of the program that draws, it reaches nothing of this page,
 * and what comes back is shown as an image, in which nothing runs. One after the other. */
export function draw(code: string, isDark: boolean, isWanted: () => boolean): Promise<Drawn | null> {
  const drawing = last.then(() => (isWanted() ? drawNow(code, isDark) : null));
  last = drawing;
  return drawing;
}

async function drawNow(code: string, isDark: boolean): Promise<Drawn> {
  let timer = 0;
  const late = new Promise<Drawn>((done) => {
    timer = window.setTimeout(() => {
      // It may never answer again: the next one gets a new frame.
      frame?.close();
      frame = null;
      done({ why: t("drawing it took longer than {n} seconds", { n: WITHIN_MS / 1_000 }) });
    }, WITHIN_MS);
  });
  const asked = (frame ??= open()).ready.then((ask) => ask(code, isDark));
  return Promise.race([asked, late]).finally(() => window.clearTimeout(timer));
}

function open(): { ready: Promise<Ask>; close: () => void } {
  const element = document.createElement("iframe");
  element.setAttribute("sandbox", "allow-scripts");
  element.setAttribute("aria-hidden", "true");
  element.tabIndex = -1;
  element.title = t("Draws diagrams");
  element.className = "diagram-frame";
  element.src = "/diagram.html";
  const waiting = new Map<number, (drawn: Drawn) => void>();
  let number = 0;
  let hear: (event: MessageEvent) => void = () => {};
  const close = () => {
    window.removeEventListener("message", hear);
    element.remove();
  };
  const ready = new Promise<Ask>((ready) => {
    hear = ({ source, data }: MessageEvent) => {
      if (source !== element.contentWindow || typeof data !== "object" || data === null) return;
      if (data.isReady === true) ready(ask);
      waiting.get(data.number)?.(drawnOf(data));
      waiting.delete(data.number);
    };
    const ask = (code: string, isDark: boolean) =>
      new Promise<Drawn>((done) => {
        number += 1;
        waiting.set(number, done);
        element.contentWindow?.postMessage({ number, code, isDark }, "*");
      });
    window.addEventListener("message", hear);
    document.body.append(element);
  });
  return { ready, close };
}

/** What the frame answered; whatever draws there may have been made to answer anything. */
function drawnOf({ svg, why }: { svg?: unknown; why?: unknown }): Drawn {
  if (typeof svg !== "string") return { why: typeof why === "string" ? why.slice(0, 200) : t("nothing was drawn") };
  if (svg.length > SVG_MAX) return { why: t("it is too large") };
  return { image: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}` };
}
