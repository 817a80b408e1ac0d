import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { payloads } from "../../e2e/payloads.mjs";
import { Markdown } from "./Markdown";

const drawn = (text: string) => renderToStaticMarkup(<Markdown text={text} />);
/** What of a page can do something, or ask somebody. */
const ACTIVE = /<(script|img|iframe|svg|style|link|meta|base|object|embed|form|input|video|audio|template|math|button|select|textarea)\b|\son\w+=|\b(?:href|src|action|ping|srcset)="(?!https?:\/\/|mailto:)/i;
const words = (html: string) => html.replace(/<[^>]*>/g, "").replace(/&(lt|gt|quot|#x27|amp);/g, (_, name: string) => ({ lt: "<", gt: ">", quot: '"', "#x27": "'", amp: "&" })[name] ?? "");

describe("Markdown", () => {
  it("draws every kind of block", () => {
    expect(drawn("# One\n\nTwo *three* **four** `five` ~~six~~\\\nseven\n\n> eight\n\n---\n\n```rust\nnine\n```")).toBe(
      '<div class="prose-lite"><h1>One</h1><p>Two <em>three</em> <strong>four</strong> <code>five</code> <del>six</del><br/>seven</p><blockquote><p>eight</p></blockquote><hr/><pre tabindex="0"><code data-language="rust">nine</code></pre></div>',
    );
    expect(drawn("3. a\n4. b\n   - c\n\n\n- [x] d\n- [ ] e")).toBe(
      '<div class="prose-lite"><ol start="3"><li><span>a</span></li><li><span>b</span><ul><li><span>c</span></li></ul></li></ol><ul><li class="task"><span role="img" aria-label="done">☑ </span><span>d</span></li><li class="task"><span role="img" aria-label="not done">☐ </span><span>e</span></li></ul></div>',
    );
    expect(drawn("| a | b |\n| - | -: |\n| 1 | 2 |")).toBe(
      '<div class="prose-lite"><table tabindex="0"><thead><tr><th scope="col">a</th><th scope="col" style="text-align:right">b</th></tr></thead><tbody><tr><td>1</td><td style="text-align:right">2</td></tr></tbody></table></div>',
    );
  });

  it("says where a link leads when its words do not", () => {
    expect(words(drawn("[the docs](https://docs.example/a)"))).toBe("the docs (docs.example)");
    expect(words(drawn("[docs.example](https://evil.example/a)"))).toBe("docs.example (evil.example)");
    expect(words(drawn("<https://docs.example/a> and https://docs.example/b"))).toBe("https://docs.example/a and https://docs.example/b");
    expect(words(drawn("[one][two]\n\n[two]: https://docs.example/ \"three\""))).toBe("one (docs.example)");
    expect(words(drawn("[one](javascript:alert(1))"))).toBe("one javascript:alert(1)");
    expect(drawn("[one](javascript:alert(1))")).not.toContain("href");
  });

  it("shows an image as its address and asks nobody for it", () => {
    expect(drawn("![a cat](https://evil.example/pixel.png)")).toBe('<div class="prose-lite"><p><code>![a cat](https://evil.example/pixel.png)</code></p></div>');
  });

  it("makes nothing of hostile text that could do anything", () => {
    expect(payloads.length).toBeGreaterThanOrEqual(128);
    const nested = `${"> ".repeat(400)}deep ${"*".repeat(900)}x`;
    for (const text of [...payloads, ...payloads.map((one) => `| a |\n| - |\n| ${one.replaceAll("\n", " ")} |`), ...payloads.map((one) => `- [ ] ${one}`), payloads.join("\n\n"), nested]) {
      // What is text is escaped: each tag that is left was made here.
      const tags = drawn(text).match(/<[^/][^>]*>/g) ?? [];
      expect(tags.filter((tag) => ACTIVE.test(tag)), text).toEqual([]);
      expect(drawn(text).replace(/<\/?[a-z][^>]*>/g, ""), text).not.toContain("<");
    }
  }, 30_000);

  it("spells out what hides or turns other characters", () => {
    expect(words(drawn("safe \u202Egnp.exe"))).toBe("safe ⟦U+202E⟧gnp.exe");
  });
});
