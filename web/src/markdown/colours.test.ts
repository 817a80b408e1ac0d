import { describe, expect, it } from "vitest";
import { payloads } from "../../e2e/payloads.mjs";
import { coloured } from "./colours";

const LANGUAGES = ["sh", "bash", "css", "diff", "dockerfile", "go", "toml", "js", "json", "py", "rust", "rs", "sql", "ts", "html", "yml"];

describe("the colours of code", () => {
  it("say what a piece is", () => {
    expect(coloured("sh", "# one\nif true; then\n  echo \"two\"\nfi")?.map((line) => line.filter(({ kind }) => kind).map(({ text, kind }) => `${kind}: ${text}`))).toEqual([["comment: # one"], ["keyword: if", "value: true", "keyword: then"], ["keyword: echo", 'string: "two"'], ["keyword: fi"]]);
    expect(coloured("klingon", "qo")).toBeNull();
  });

  it("leave every character where it is", () => {
    const texts = [...payloads, "", "\n", "a\n\n\tb\n", "/* never\nends", "`${x`\n${\"}", "let s = \"\\\nb\";\n// é 🙂"];
    for (const language of LANGUAGES) {
      for (const text of texts) expect(coloured(language, text)?.map((line) => line.map((piece) => piece.text).join("")).join("\n"), language).toBe(text);
    }
  }, 30_000);
});
