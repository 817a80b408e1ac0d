import { memo } from "react";
import Markdown from "react-markdown";
import gfm from "remark-gfm";
import { visible } from "../lib/t";

/** What the model said, as Markdown: raw HTML stays text, pictures stay addresses, links say where they lead. */
export const Answer = memo(function Answer({ text }: { text: string }) {
  return (
    <div className="prose-lite">
      <Markdown
        remarkPlugins={[gfm]}
        components={{
          img: ({ alt, src }) => <code>{`![${alt ?? ""}](${typeof src === "string" ? src : ""})`}</code>,
          a: ({ href, children }) => (
            <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
              {children}
            </a>
          ),
          input: ({ checked }) => <span>{checked ? "☑ " : "☐ "}</span>,
        }}
      >
        {visible(text)}
      </Markdown>
    </div>
  );
});
