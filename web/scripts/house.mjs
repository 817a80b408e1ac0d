// What the dashboard's source must never hold, and why.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const banned = [
  [/keepPreviousData|placeholderData/, "shows one session's plan under another's name for a few frames"],
  [/dangerouslySetInnerHTML|innerHTML|insertAdjacentHTML|document\.write/, "lets text become markup"],
  [/\beval\(|new Function\(/, "lets text become code"],
  [/https?:\/\/(?!127\.0\.0\.1|localhost|www\.w3\.org|api\.openai\.com|openrouter\.ai)/, "asks another site"],
  [/localStorage|sessionStorage/, "breaks the page where storage is refused or holds something else", ["src/storage.ts", "src/storage.test.ts"]],
  [/useParams\(/, "mounts a screen that may keep the state of another session", ["src/parts/perSession.tsx"]],
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
process.exit(found ? 1 : 0);
