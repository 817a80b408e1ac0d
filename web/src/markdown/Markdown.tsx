import type { Nodes, Parent, Table } from "mdast";
import { memo, useMemo, type ReactNode } from "react";
import { t, visible } from "../lib/t";
import { parse, safeAddress, targetOf, type Parsed } from "./parse";

/** A text as Markdown: markup stays text, pictures stay addresses, and a link says where it leads where its own words do not. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const parsed = useMemo(() => parse(visible(text)), [text]);
  return <div className="prose-lite">{inner(parsed.root, { ...parsed, isWhole: false })}</div>;
});

/** What is drawn, and how. */
export interface Drawing extends Parsed {
  /** Whether nothing may stay unsaid: addresses as a whole, and titles that are shown elsewhere when a pointer rests on them. */
  isWhole: boolean;
}

export const inner = (node: Parent, parsed: Drawing): ReactNode[] => node.children.map((child, at) => <Node key={at} node={child} parsed={parsed} />);

/** The words of a node, without their marks. */
export const wordsOf = (node: Nodes): string => ("value" in node ? node.value : "children" in node ? node.children.map(wordsOf).join("") : "");

function Node({ node, parsed }: { node: Nodes; parsed: Drawing }): ReactNode {
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
      return <Link address={node.url} title={node.title} words={wordsOf(node)} isWhole={parsed.isWhole}>{inner(node, parsed)}</Link>;
    case "linkReference": {
      const found = parsed.definitions.get(node.identifier);
      if (!found) return <>[{inner(node, parsed)}]</>;
      return <><Link address={found.url} words={wordsOf(node)} isWhole={parsed.isWhole}>{inner(node, parsed)}</Link>{parsed.isWhole && labelOf(node, wordsOf(node))}</>;
    }
    case "image":
      return <code>{`![${node.alt ?? ""}](${node.url}${parsed.isWhole && node.title ? ` "${node.title}"` : ""})`}</code>;
    case "imageReference":
      return <><code>{`![${node.alt ?? ""}](${parsed.definitions.get(node.identifier)?.url ?? node.identifier})`}</code>{parsed.isWhole && labelOf(node, node.alt ?? "")}</>;
    case "footnoteReference":
      return <sup>[{node.label ?? node.identifier}]</sup>;
    case "footnoteDefinition":
      return <div className="text-sm"><sup>[{node.label ?? node.identifier}]</sup> {inner(node, parsed)}</div>;
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

/** What an address is called elsewhere in the text, where the words do not say it. */
const labelOf = (node: { label?: string | null; identifier: string }, words: string) => {
  const label = node.label ?? node.identifier;
  return label === words ? null : <span className="text-soft"> [{label}]</span>;
};

function Rows({ table, parsed }: { table: Table; parsed: Drawing }) {
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
function Link({ address, title, words, isWhole, children }: { address: string; title?: string | null; words: string; isWhole: boolean; children: ReactNode }) {
  const href = safeAddress(address);
  const target = targetOf(address);
  const isSaid = words === address || (words === target && !isWhole) || `mailto:${words}` === address || address.endsWith(`//${words}`);
  const more = isWhole && title ? ` "${title}"` : "";
  if (!href) return <>{children} <code>{address}{more}</code></>;
  return (
    <>
      <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">{children}</a>
      {(!isSaid || more) && <span className="text-soft"> ({isWhole ? address : target}{more})</span>}
    </>
  );
}
