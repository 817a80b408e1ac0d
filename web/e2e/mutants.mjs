// The dashboard, changed in a copy: the suite catches each. `./prove dashboard --mutants [WORDS]`
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const web = resolve(import.meta.dirname, "..");
const PLACEHOLDER = ["src/api/queries.ts", 'queryKey: ["plan-control-state", id],', 'queryKey: ["plan-control-state", id],\n    placeholderData: (previous) => previous,'];
const UNKEYED = ["src/app/perSession.tsx", "<Screen key={id} id={id} />", "<Screen id={id} />"];
const APPROVE = 'got(api.POST("/api/sessions/{id}/plan/approve", { ...to(id, digest), body: { notes, hold } }))';
const LATEST = 'got(api.GET("/api/sessions/{id}", { params: inSession(id) })).then((now) => got(api.POST("/api/sessions/{id}/plan/approve", { ...to(id, now.plan?.digest ?? digest), body: { notes, hold } })))';
/** What is changed, in which places, and which test must see it. The first changes nothing, and must pass. */
const only = process.argv[2];
const MUTANTS = [
  ["nothing", [], "01"],
  ["old data under a new session", [PLACEHOLDER, UNKEYED], "01"],
  ["events of any session", [["src/session/log.ts", "if (!envelope.sessionId || envelope.sessionId !== this.session) return false;", ""]], "02"],
  ["an approval of whatever is there now", [["src/features/common/verdicts.ts", APPROVE, LATEST]], "04"],
  ["events taken twice", [["src/session/log.ts", "if (envelope.seq !== this.to + 1) return false;", ""]], "06"],
  ["a draft that is not kept", [["src/features/chat/Composer.tsx", "useKept(`draft:${id}`, \"\")", "useState(\"\")"]], "07"],
  ["notes that are not sent", [["src/features/review/Verdict.tsx", "withNotes ? words : []", "[]"]], "10"],
  ["a plain approval that is not confirmed", [["src/features/review/Verdict.tsx", 'onClick={() => setAsk("plain")}', "onClick={() => void approve(false)}"]], "11"],
  ["keys that decide at once", [["src/features/review/Verdict.tsx", "const ready = decides && settled && !busy && reachable;", "const ready = decides;"]], "12"],
  ["text that counts as seen when it is drawn", [["src/features/review/useSeen.ts", "if (begin >= bottom) break;", ""], ["src/features/review/useSeen.ts", "if (to - from < 2 * INSIDE) continue;", "views.push({ line, from: 0, to: height, height }); continue;"]], "31"],
  ["a button that approves what was not seen", [["src/features/review/Verdict.tsx", "const isRead = seen.unseen === 0;", "const isRead = true;"]], "31"],
  ["a tab that reads while it is hidden", [["src/features/review/useSeen.ts", 'document.visibilityState !== "visible" || !region.current', "!region.current"]], "33"],
  ["a header of the newest revision", [["src/features/review/PlanPanel.tsx", "{shown && <code", "{reading.newest && shown && <code"], ["src/features/review/PlanPanel.tsx", "title={shown.digest}", "title={reading.newest.digest}"], ["src/features/review/PlanPanel.tsx", "{shown.digest.slice(0, 8)}", "{reading.newest.digest.slice(0, 8)}"]], "34"],
  ["decisions without a server", [["src/features/common/Decisions.tsx", "disabled={!reachable}", "disabled={false}"]], "35"],
  ["a target that is not said", [["src/markdown/Markdown.tsx", "{(!isSaid || more) && <span", "{more && !isWhole && <span"]], "36"],
  ["markup that is left away", [["src/markdown/PlanMarkdown.tsx", '<pre className="whitespace-pre-wrap">{node.value}</pre>', ""]], "37"],
  ["lines that nothing stands for", [["src/markdown/lines.ts", "if (before) before.last = line;\n      else leaf.first = line;", ""]], "37"],
  ["a replaced revision under the newest one's buttons", [["src/features/review/ReviewScreen.tsx", "{isOld ? <OldRevision", "{isOld && newest < 0 ? <OldRevision"]], "39"],
  ["what was added before what was removed", [["src/lib/difference.ts", "done.push(...(removed ?? []).map((row, place) => ({ row, pieces: pairs[place]?.before })), ...(added ?? []).map((row, place) => ({ row, pieces: pairs[place]?.after })));", "done.push(...run.map((row) => ({ row })));"]], "40"],
  ["a diagram in the place of its lines", [["src/markdown/PlanMarkdown.tsx", '{node.value !== "" && node.value.split', '{node.value !== "" && node.lang !== "mermaid" && node.value.split']], "45"],
  ["a note that stands nowhere", [["src/features/review/Discussion.tsx", "(isHere(standsBelow(note.last ?? note.line, lines)) ?", "(note.line === null ?"]], "47"],
  ["a comment that everybody changes", [["src/features/review/ThreadCard.tsx", "canEdit={thread.by === doing.me && !thread.isSent}", "canEdit={!thread.isSent}"]], "48"],
  ["a thread that stays where its line was", [["src/features/review/notes.ts", "standsBelow(thread.place?.lastLine ?? null, lines)", "standsBelow(thread.lastLine ?? thread.line ?? null, lines)"]], "49"],
  ["a suggestion that takes a line more", [["src/features/review/notes.ts", "last - first + 1", "last - first + 2"]], "50"],
  ["a change of a file that nobody is shown", [["src/session/log.ts", "return changes.length > 0 ?", "return changes.length > 9 ?"]], "59"],
  ["a receipt without what came later", [["src/features/execution/Receipt.tsx", "[...(all.get(file.path) ?? []), file]", "all.get(file.path) ?? [file]"]], "60"],
  ["a line that goes on when the turn has ended", [["src/session/activity.ts", "if (!isOpen) {", "if (!isOpen && !activity) {"]], "61"],
  ["a list from which every execution is resumed as a run", [["src/features/common/WaitingLine.tsx", "() => verdicts.resume(id)", "() => verdicts.resumeRuns(id)"]], "62"],
  ["a snooze that never ends", [["src/features/inbox/snooze.ts", "const lasts = (end: number) => end > Date.now();", "const lasts = (end: number) => end > 0;"]], "18"],
  ["a promotion without a word", [["src/features/memory/MemoryScreen.tsx", "onClick={() => setPromote(row)}", "onClick={() => void verdicts.promote(id, row.item.id, row.item.text)}"]], "25"],
  ["first steps that end anyhow", [["src/features/access/entry.tsx", "disabled={!ready} onClick", "onClick"]], "27"],
];

let missed = 0;
const played = MUTANTS.filter(([name]) => !only || name.includes(only));
for (const [name, edits, test] of played) {
  const copy = mkdtempSync(join(tmpdir(), "planwright-mutant-"));
  try {
    for (const part of ["src", "public", "diagram", "index.html", "vite.config.ts", "package.json", "tsconfig.json"]) cpSync(join(web, part), join(copy, part), { recursive: true });
    symlinkSync(join(web, "node_modules"), join(copy, "node_modules"));
    for (const [file, from, to] of edits) {
      const source = readFileSync(join(copy, file), "utf8");
      if (source.split(from).length !== 2) throw new Error(`${name}: ${file} does not hold once: ${from}`);
      writeFileSync(join(copy, file), source.replace(from, () => to));
    }
    const built = spawnSync("npx", ["vite", "build"], { cwd: copy, encoding: "utf8" });
    if (built.status !== 0) throw new Error(`${name} does not build: ${built.stderr}`);
    const env = { ...process.env, PLANWRIGHT_DASHBOARD: join(copy, "dist/site") };
    const run = spawnSync("node", [join(web, "e2e/run.mjs"), "--only", `${test} `], { env, encoding: "utf8", timeout: 120_000 });
    const isRight = (run.status === 0) === (edits.length === 0);
    console.log(`${isRight ? "ok    " : "MISSED"}  ${name}: ${test} ${run.status === 0 ? "passes" : "fails"}`);
    if (!isRight) missed += 1;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}
const many = played.filter(([, edits]) => edits.length > 0).length;
console.log(`dashboard mutants: ${many - missed} of ${many} caught (target all) ${missed ? "short" : "ok"}`);
process.exit(missed ? 1 : 0);
