import type { Nodes, Parent, Table } from "mdast";
import { memo, useMemo, type ReactNode } from "react";
import { t, visible } from "../lib/t";
import { parse, safeAddress, targetOf, type Parsed } from "./parse";

/** A text as Markdown: markup stays text, pictures stay addresses, and a link says where it leads where its own words do not. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const parsed = useMemo(() => parse(visible(text)), [text]);
  return <div className="prose-lite">{inner(parsed.root, parsed)}</div>;
});

const inner = (node: Parent, parsed: Parsed): ReactNode[] => node.children.map((child, at) => <Node key={at} node={child} parsed={parsed} />);

/** The words of a node, without their marks. */
const wordsOf = (node: Nodes): string => ("value" in node ? node.value : "children" in node ? node.children.map(wordsOf).join("") : "");

function Node({ node, parsed }: { node: Nodes; parsed: Parsed }): ReactNode {
  switch (node.type) {
    case "text":
    // Markup is text.
    case "html":
      return node.value;
    case "paragraph":
      return <p>{inner(node, parsed)}</p>;
    case "heading": {
      const Heading = `h${node.depth}` as const;
      return <Heading>{inner(node, parsed)}</Heading>;
    }
    case "strong":
      return <strong>{inner(node, parsed)}</strong>;
    case "emphasis":
      return <em>{inner(node, parsed)}</em>;
    case "delete":
      return <del>{inner(node, parsed)}</del>;
    case "inlineCode":
      return <code>{node.value}</code>;
    case "code":
      return <pre tabIndex={0}><code data-language={node.lang ?? undefined}>{node.value}</code></pre>;
    case "blockquote":
      return <blockquote>{inner(node, parsed)}</blockquote>;
    case "list":
      return node.ordered ? <ol start={node.start ?? 1}>{inner(node, parsed)}</ol> : <ul>{inner(node, parsed)}</ul>;
    case "listItem":
      return (
        <li className={typeof node.checked === "boolean" ? "task" : undefined}>
          {typeof node.checked === "boolean" && <span role="img" aria-label={node.checked ? t("done") : t("not done")}>{node.checked ? "☑ " : "☐ "}</span>}
          {/* The items of a list without blank lines are lines, and not paragraphs. */}
          {node.children.map((child, at) => (child.type === "paragraph" && !node.spread ? <span key={at}>{inner(child, parsed)}</span> : <Node key={at} node={child} parsed={parsed} />))}
        </li>
      );
    case "table":
      return <Rows table={node} parsed={parsed} />;
    case "thematicBreak":
      return <hr />;
    case "break":
      return <br />;
    case "link":
      return <Link address={node.url} words={wordsOf(node)}>{inner(node, parsed)}</Link>;
    case "linkReference": {
      const found = parsed.definitions.get(node.identifier);
      return found ? <Link address={found.url} words={wordsOf(node)}>{inner(node, parsed)}</Link> : <>[{inner(node, parsed)}]</>;
    }
    case "image":
      return <code>{`![${node.alt ?? ""}](${node.url})`}</code>;
    case "imageReference":
      return <code>{`![${node.alt ?? ""}](${parsed.definitions.get(node.identifier)?.url ?? node.identifier})`}</code>;
    case "footnoteReference":
      return <sup>[{node.identifier}]</sup>;
    case "footnoteDefinition":
      return <div className="text-sm"><sup>[{node.identifier}]</sup> {inner(node, parsed)}</div>;
    // It shows where it is used.
    case "definition":
    case "yaml":
      return null;
    case "root":
    case "tableRow":
    case "tableCell":
      return inner(node, parsed);
  }
}

function Rows({ table, parsed }: { table: Table; parsed: Parsed }) {
  const [head, ...rows] = table.children;
  const align = (at: number) => ({ textAlign: table.align?.[at] ?? undefined });
  return (
    <table tabIndex={0}>
      <thead>
        <tr>{head?.children.map((cell, at) => <th key={at} scope="col" style={align(at)}>{inner(cell, parsed)}</th>)}</tr>
      </thead>
      <tbody>
        {rows.map((row, at) => <tr key={at}>{row.children.map((cell, at) => <td key={at} style={align(at)}>{inner(cell, parsed)}</td>)}</tr>)}
      </tbody>
    </table>
  );
}

/** A link, and where it leads if its words do not say it. One that could do something else than lead to a page is text. */
function Link({ address, words, children }: { address: string; words: string; children: ReactNode }) {
  const href = safeAddress(address);
  const target = targetOf(address);
  const isSaid = words === address || words === target || `mailto:${words}` === address || address.endsWith(`//${words}`);
  if (!href) return <>{children} <code>{address}</code></>;
  return (
    <>
      <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">{children}</a>
      {!isSaid && <span className="text-soft"> ({target})</span>}
    </>
  );
}
