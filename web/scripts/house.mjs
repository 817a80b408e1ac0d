// What the dashboard's source must never hold, and why.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const banned = [
  [/keepPreviousData|placeholderData/, "shows one session's plan under another's name for a few frames"],
  [/dangerouslySetInnerHTML|innerHTML|insertAdjacentHTML|document\.write/, "lets text become markup"],
  [/\beval\(|new Function\(/, "lets text become code"],
  [/https?:\/\/(?!127\.0\.0\.1|localhost|www\.w3\.org|api\.openai\.com|openrouter\.ai)/, "asks another site", ["src/markdown/Markdown.test.tsx", "src/markdown/PlanMarkdown.test.tsx"]],
  [/localStorage|sessionStorage/, "breaks the page where storage is refused or holds something else", ["src/lib/storage.ts", "src/lib/storage.test.ts"]],
  [/useParams\(/, "mounts a screen that may keep the state of another session", ["src/app/perSession.tsx"]],
  [/rehype-raw|rehypeRaw/, "lets text become markup"],
];
const walk = (folder) =>
  readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? walk(path) : [path];
  });
let found = 0;
for (const path of walk("src").filter((path) => /\.tsx?$/.test(path) && !path.endsWith("api/types.ts"))) {
  readFileSync(path, "utf8").split("\n").forEach((line, at) => {
    for (const [pattern, why, except = []] of banned) {
      if (!except.includes(path) && pattern.test(line)) {
        console.error(`${path}:${at + 1} holds ${pattern}: it ${why}`);
        found += 1;
      }
    }
  });
}
// Which folder may use which: what is above uses what is below, and a feature uses another one only as this says.
const below = {
  lib: [],
  api: ["lib"],
  session: ["lib", "api"],
  markdown: ["lib"],
  ui: ["lib"],
  "features/common": ["lib", "api", "session", "markdown", "ui"],
  app: null,
};
const neighbours = {
  inbox: ["permissions"],
  review: ["permissions", "execution"],
};
const folderOf = (path) => /^features\/\w+/.exec(path)?.[0] ?? path.split("/")[0];
const may = (from, to) => {
  if (from === to || below[from] === null) return true;
  if (below[from]) return below[from].includes(to);
  const other = to.replace("features/", "");
  return to !== "app" && (!to.startsWith("features/") || other === "common" || (neighbours[from.replace("features/", "")] ?? []).includes(other));
};
let arrows = 0;
for (const path of walk("src").filter((path) => /\.tsx?$/.test(path))) {
  for (const [, to] of readFileSync(path, "utf8").matchAll(/(?:from |import\(|import )"(\.[^"]*)"/g)) {
    const [from, target] = [relative("src", path), relative("src", join(dirname(path), to))];
    arrows += 1;
    // What a test is fed may lie beside the source.
    if (target.startsWith("..") && path.includes(".test.")) continue;
    if (may(folderOf(from), folderOf(target))) continue;
    console.error(`${path} uses ${target}: ${folderOf(from)} does not use ${folderOf(target)}`);
    found += 1;
  }
}
if (arrows < 100) throw new Error(`only ${arrows} imports were read`);
process.exit(found ? 1 : 0);
