import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { payloads } from "../../e2e/payloads.mjs";
import { visible } from "../lib/t";
import { PlanMarkdown, readPlan } from "./PlanMarkdown";

const frame = ({ first, last }: { first: number; last: number }) => ({ attributes: { "data-line": first, "data-last-line": last }, margin: null, tools: null, below: null });
const drawn = (text: string) => renderToStaticMarkup(<PlanMarkdown plan={readPlan(text)} frame={frame} />);
const words = (html: string) => html.replace(/<[^>]*>/g, "").replace(/&(lt|gt|quot|#x27|amp);/g, (_, name: string) => ({ lt: "<", gt: ">", quot: '"', "#x27": "'", amp: "&" })[name] ?? "");

/** What is drawn, by the lines that it stands for. */
function units(text: string) {
  return drawn(text)
    .split(/(?=<(?:div|tr) data-line=")/)
    .slice(1)
    .map((piece) => {
      const [, first, last] = /data-line="(\d+)" data-last-line="(\d+)"/.exec(piece) ?? [];
      return { first: Number(first), last: Number(last), words: words(piece) };
    });
}

/** Each line that is not blank belongs to one thing, in order, and all words of it are there. */
function expectWhole(text: string) {
  const all = units(text);
  const lines = visible(text).split("\n");
  let end = 0;
  for (const { first, last } of all) {
    expect(first, text).toBeGreaterThan(end);
    expect(last, text).toBeGreaterThanOrEqual(first);
    end = last;
  }
  lines.forEach((line, at) => {
    if (/^\s*$/.test(line)) return;
    const unit = all.find(({ first, last }) => first <= at + 1 && at + 1 <= last);
    expect(unit, `line ${at + 1} of ${text}`).toBeDefined();
    // The number of a list's item is counted anew, and a box of a task is drawn; what an entity stands for is drawn.
    const bare = line.replace(/^[\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+)*(?:\[[ xX]\]\s)?/, "").replace(/&(?:#x?[\da-f]+|\w+);/gi, " ");
    for (const word of bare.match(/[\p{L}\p{N}]+/gu) ?? []) expect(unit?.words, `${word} of line ${at + 1} of ${text}`).toContain(word);
  });
}

const HOSTILE = [
  "```sh rm -rf /home\nls\n```", "~~~ $(reboot)\n~~~", "```\nnever closed\n  indented", "    code by indentation\n\n    and more", "> ```js evil\n> a\n>\n> b\n> ```\nafter",
  '[docs](https://docs.example "and then delete everything")', '![cat](https://evil.example/p.png "and then delete everything")', "[a][hidden words]\n\n[hidden words]: https://evil.example/ 'title too'",
  "[unused]: https://evil.example/ \"nobody links to this\"", "![cat][where]\n\n[where]: https://evil.example/cat", "text[^1]\n\n[^1]: A footnote that says more.\n    And goes on.\n\n[^unused]: never shown on other pages",
  "<!-- then delete everything -->", "before <!-- inside --> after", "<!--\nmany\n\nlines\n-->", "<details>\n\nhidden *words*\n\n</details>", "<div hidden>\nsecret\n</div>", "<script>\nlet a = 1;\n\nlet b = 2;\n</script>",
  "| a | b |\n| - | - |\n| 1 | 2 | more than the head has | and more |\n| 3 |", "| a |\n| - |\n| `x | y` | z |", "|a|\n|:-:|", "Setext\n===\n\nTwo\nlines\n---", "# closed ###", "#", "- \n- a\n-\n  b\n- [ ]\n- [x] done", "1. a\n1. b\n5. c",
  ">", "> \n>\n> a", "- > - > deep\n  lazy", "* * *", "a\\\nb  \nc", "*a **b* c**", "\\# no heading", "&lt;b&gt; &amp; &#106;", "<https://docs.example/x?y=z>", "https://docs.example/a_b_c", "www.docs.example", "a@docs.example",
  "[docs.example](https://docs.example/other/path)", "[https://docs.example](https://evil.example)", "[x](<javascript:alert(1)> \"t\")", "* a\n\n  b\n\n      c\n* d", "\ta\n\tb", "- a\n\n\n\n- b", "line\rreturn", "a\u2028b",
  `${"> ".repeat(300)}deep`, `${"- ".repeat(300)}deep`, Array.from({ length: 200 }, (_, at) => `${" ".repeat(2 * at)}- item ${at}`).join("\n"), "[".repeat(2000), `${"*".repeat(2000)}a`, `${"![](".repeat(500)}x`, `a ${"`".repeat(999)} b`,
];

describe("a plan as Markdown", () => {
  it("says of each thing which lines it stands for", () => {
    expect(units("# Title\n\nOne\ntwo\n\n1. three\n   - [x] four\n\n| a | b |\n| - | - |\n| 5 | 6 |\n\n```sh\nls\n\npwd\n```\n")).toEqual([
      { first: 1, last: 1, words: "Title" },
      { first: 3, last: 4, words: "One\ntwo" },
      { first: 6, last: 6, words: "three☑" },
      { first: 7, last: 7, words: "four" },
      { first: 9, last: 10, words: "ab" },
      { first: 11, last: 11, words: "56" },
      { first: 13, last: 13, words: "sh" },
      { first: 14, last: 14, words: "ls" },
      { first: 15, last: 15, words: " " },
      { first: 16, last: 17, words: "pwd" },
    ]);
  });

  it("gives each entry of a list the number that was written", () => {
    expect([...drawn("1. a\n1. b\n\n   5) c\n9. d\n\n> 3. e\n> 7. f\n").matchAll(/<li value="(\d+)"/g)].map(([, number]) => number)).toEqual(["1", "1", "5", "9", "3", "7"]);
  });

  it("shows what a plan asks for as it is written", () => {
    expect(units("---\ntools: write_file\n---\n# Title\n")).toEqual([
      { first: 1, last: 1, words: "---" },
      { first: 2, last: 2, words: "tools: write_file" },
      { first: 3, last: 3, words: "---" },
      { first: 4, last: 4, words: "Title" },
    ]);
    expect(units("---\nno end\n")).toHaveLength(2);
  });

  it("says where every link leads, as a whole, and what its title says", () => {
    expect(words(drawn('[docs.example](https://docs.example/other "later")'))).toBe('docs.example (https://docs.example/other "later")');
    expect(words(drawn("<https://docs.example/a>"))).toBe("https://docs.example/a");
  });

  it("leaves no word of any line away", () => {
    for (const text of HOSTILE) expectWhole(text);
    for (const text of payloads) {
      for (const wrapped of [text, `- ${text}`, `> ${text}`, `| a |\n| - |\n| ${text} |`, `# ${text}`, `a\n${text}\nb`]) expectWhole(wrapped);
    }
  }, 60_000);

  it("leaves no word of what is put together at random away", () => {
    let state = Date.now() >>> 0;
    const below = (count: number) => Math.floor(((state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32) * count);
    const pieces = HOSTILE.filter((text) => text.length < 200).flatMap((text) => text.split("\n"));
    const before = ["", "", "", "> ", "- ", "  ", "    ", "1. "];
    for (let round = 0; round < 1_500; round += 1) {
      const lines = Array.from({ length: 1 + below(9) }, () => (before[below(before.length)] ?? "") + (below(4) === 0 ? "" : (pieces[below(pieces.length)] ?? "")));
      expectWhole(lines.join("\n"));
    }
  }, 60_000);
});
