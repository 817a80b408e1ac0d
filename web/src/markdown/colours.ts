import bash from "highlight.js/lib/languages/bash";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";

/** A piece of a line of code, and what it is: a name of a colour. */
export interface Coloured {
  text: string;
  kind: string;
}

const lowlight = createLowlight({ bash, css, diff, dockerfile, go, ini, javascript, json, python, rust, sql, typescript, xml, yaml });

/** What the parts of a language are called, as one of few colours. */
const KINDS: [RegExp, string][] = [
  [/comment|quote|meta/, "comment"],
  [/keyword|selector-tag|built_in|tag\b|type/, "keyword"],
  [/string|regexp|addition/, "string"],
  [/number|literal|variable|attr|symbol|property/, "value"],
  [/title|section|name|function/, "name"],
  [/deletion/, "deletion"],
];
const kindOf = (classes: string): string => KINDS.find(([pattern]) => pattern.test(classes))?.[1] ?? "";

/** The lines of code with their colours; nothing, if the language is none of these. Together the pieces are the code, to the character. */
export function coloured(language: string, code: string): Coloured[][] | null {
  if (!lowlight.registered(language)) return null;
  const lines: Coloured[][] = [[]];
  const walk = (nodes: ReturnType<typeof lowlight.highlight>["children"], kind: string) => {
    for (const node of nodes) {
      if (node.type === "text") {
        node.value.split("\n").forEach((text, at) => {
          if (at > 0) lines.push([]);
          if (text) lines.at(-1)?.push({ text, kind });
        });
      } else if (node.type === "element") {
        walk(node.children as typeof nodes, kindOf(([] as unknown[]).concat(node.properties.className ?? []).join(" ")) || kind);
      }
    }
  };
  walk(lowlight.highlight(language, code).children, "");
  return lines;
}
