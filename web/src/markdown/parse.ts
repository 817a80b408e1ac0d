import type { Definition, Root, RootContent } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";

/** A text as what it is made of, and the addresses that it defines apart from where they are used. */
export interface Parsed {
  root: Root;
  definitions: Map<string, Definition>;
}

/** Reads Markdown as GitHub does. Nothing of it is interpreted beyond that: markup is text. */
export function parse(text: string): Parsed {
  const root = fromMarkdown(text, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });
  const definitions = new Map<string, Definition>();
  const collect = (nodes: RootContent[]) => {
    for (const node of nodes) {
      // The first of two that define the same counts.
      if (node.type === "definition" && !definitions.has(node.identifier)) definitions.set(node.identifier, node);
      else if ("children" in node) collect(node.children as RootContent[]);
    }
  };
  collect(root.children);
  return { root, definitions };
}

/** The address of a link, if it leads to a page or to somebody's mail; nothing, if it could do anything else. */
export function safeAddress(address: string): string | undefined {
  const scheme = /^\s*([a-z][a-z0-9+.-]*):/i.exec(address)?.[1]?.toLowerCase();
  return scheme === "http" || scheme === "https" || scheme === "mailto" ? address : undefined;
}

/** Where a link leads, in a few words: the host of a page. */
export function targetOf(address: string): string {
  try {
    const url = new URL(address);
    return url.host || url.href;
  } catch {
    return address;
  }
}
