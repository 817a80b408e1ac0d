import type { Code, List, ListItem, Nodes, Parent, RootContent, Table } from "mdast";
import { Fragment, lazy, memo, Suspense, useEffect, useState, type ReactNode } from "react";
import { t, visible } from "../lib/t";
import { inner, wordsOf, type Drawing } from "./Markdown";
import type { Coloured } from "./colours";
import { isFenced, Lines, spanOf, type Span } from "./lines";
import { parse } from "./parse";

/** What stands beside lines, and what they are known by. */
export interface Frame {
  attributes: Record<string, string | number | undefined>;
  /** Before them. */
  margin: ReactNode;
  /** After them. */
  tools: ReactNode;
  /** Below them. */
  below: ReactNode;
}

/** A plan that was read, and the headings in it. */
export interface PlanRead extends Drawing {
  lines: Lines;
  headings: { line: number; depth: number; words: string }[];
}

/** Reads the Markdown of a plan. What hides or reorders text is spelled out. */
export function readPlan(text: string): PlanRead {
  const lined = visible(text).split("\n");
  const settings = settingsOf(lined);
  const parsed = parse([...lined].fill("", 0, settings.length).join("\n"));
  if (settings.length > 0) parsed.root.children.unshift({ type: "yaml", value: settings.join("\n"), position: { start: { line: 1, column: 1 }, end: { line: settings.length, column: 4 } } });
  const lines = new Lines(parsed.root, lined);
  const headings = parsed.root.children.flatMap((node) => (node.type === "heading" ? [{ line: lines.of(node)?.first ?? 1, depth: node.depth, words: wordsOf(node) }] : []));
  return { ...parsed, isWhole: true, lines, headings };
}

/** The lines at the beginning in which a plan says what it asks for, with the marks around them. */
function settingsOf(lines: string[]): string[] {
  const isMark = (line: string) => line.trimEnd() === "---";
  const end = isMark(lines[0] ?? "") ? lines.findIndex((line, at) => at > 0 && isMark(line)) : -1;
  return lines.slice(0, end + 1);
}

interface Plan extends PlanRead {
  frame: (span: Span) => Frame;
}

/** A plan as what its Markdown means. Each thing that is drawn says which lines it stands for, and together they are all of them: what
 * Markdown leaves away, such as markup, comments and addresses, stands there as text. */
export const PlanMarkdown = memo(function PlanMarkdown({ plan, frame }: { plan: PlanRead; frame: (span: Span) => Frame }) {
  return <div className="plan-doc">{blocks(plan.root, { ...plan, frame })}</div>;
});

const blocks = (node: Parent, plan: Plan): ReactNode[] => node.children.map((child, at) => <Block key={at} node={child} plan={plan} />);

/** Lines that are drawn as one. */
function Framed({ span, plan, className = "", children }: { span: Span | undefined; plan: Plan; className?: string; children: ReactNode }) {
  if (!span) return children;
  const { attributes, margin, tools, below } = plan.frame(span);
  return (
    <>
      <div {...attributes} className={`plan-block group ${className}`}>
        {margin}
        <div className="min-w-0 flex-1">{noteAt(span, plan)}{children}</div>
        {tools}
      </div>
      {below}
    </>
  );
}

/** What a footnote is called that begins here. */
const noteAt = ({ first, last }: Span, { lines }: Plan) => [...lines.notes].filter(([line]) => first <= line && line <= last).map(([line, name]) => <sup key={line}>[{name}] </sup>);

function Block({ node, plan }: { node: RootContent; plan: Plan }): ReactNode {
  const { lines } = plan;
  const span = lines.of(node);
  if (node.type === "yaml") return <div className="plan-code" role="group" aria-label={t("What the plan asks for")}><AsWritten node={node} plan={plan} /></div>;
  if (lines.asWritten.has(node)) return <AsWritten node={node} plan={plan} />;
  switch (node.type) {
    case "paragraph":
      return <Framed span={span} plan={plan}><p>{inner(node, plan)}</p></Framed>;
    case "heading": {
      // The title of the panel is above all of them.
      const Heading = `h${Math.min(6, node.depth + 3)}` as "h4";
      return <Framed span={span} plan={plan} className={`depth-${node.depth}`}><Heading>{inner(node, plan)}</Heading></Framed>;
    }
    case "thematicBreak":
      return <Framed span={span} plan={plan}><hr /></Framed>;
    case "code":
      return <CodeLines node={node} plan={plan} />;
    case "html":
      return <Framed span={span} plan={plan}><p className="label">{t("Markup, which does nothing here")}</p><pre className="whitespace-pre-wrap">{node.value}</pre></Framed>;
    case "definition":
      return <Framed span={span} plan={plan}><p className="label">{t("Address of a link")}</p><code>[{node.label ?? node.identifier}]: {node.url}{node.title ? ` "${node.title}"` : ""}</code></Framed>;
    case "list":
      return <Items list={node} plan={plan} />;
    case "table":
      return <Rows table={node} plan={plan} />;
    case "blockquote":
      return <blockquote>{span ? <Framed span={span} plan={plan}><p className="text-soft">{t("(empty)")}</p></Framed> : blocks(node, plan)}</blockquote>;
    case "footnoteDefinition":
      return <div className="text-sm">{span ? <Framed span={span} plan={plan}>{t("(empty)")}</Framed> : blocks(node, plan)}</div>;
    default:
      return <AsWritten node={node} plan={plan} />;
  }
}

function Items({ list, plan }: { list: List; plan: Plan }) {
  const items = list.children.map((item, at) => (
    <li key={at} value={list.ordered ? numberOf(item, plan) : undefined} className={typeof item.checked === "boolean" ? "task" : undefined}>
      {typeof item.checked === "boolean" && <span role="img" aria-label={item.checked ? t("done") : t("not done")} className="task-box">{item.checked ? "☑" : "☐"}</span>}
      <Item item={item} plan={plan} />
    </li>
  ));
  return list.ordered ? <ol>{items}</ol> : <ul>{items}</ul>;
}

/** The number that an entry was given: Markdown would count from the first one, and people name steps by what is written. */
function numberOf(item: ListItem, plan: Plan): number | undefined {
  const start = item.position?.start;
  const written = start && /^\d{1,9}/.exec((plan.lines.text[start.line - 1] ?? "").slice(start.column - 1))?.[0];
  return written === undefined ? undefined : Number(written);
}

function Item({ item, plan }: { item: ListItem; plan: Plan }) {
  const span = plan.lines.of(item);
  if (plan.lines.asWritten.has(item)) return <AsWritten node={item} plan={plan} />;
  return span ? <Framed span={span} plan={plan}><span className="text-soft">{t("(empty)")}</span></Framed> : blocks(item, plan);
}

/** Longer code has no colours: finding them would take longer than reading it. */
const COLOURED_MAX = 20_000;

/** The colours of code, once what knows the language is loaded. */
function useColours(language: string, code: string): Coloured[][] | null {
  const [found, setFound] = useState<Coloured[][] | null>(null);
  useEffect(() => {
    setFound(null);
    if (!language || code.length > COLOURED_MAX) return;
    let isOver = false;
    void import("./colours").then(({ coloured }) => !isOver && setFound(coloured(language.toLowerCase(), code)), () => {});
    return () => void (isOver = true);
  }, [language, code]);
  return found;
}

const Diagram = lazy(() => import("./Diagram").then(({ Diagram }) => ({ default: Diagram })));

/** A row for each line of code, below what its fence says of it. */
function CodeLines({ node, plan }: { node: Code; plan: Plan }) {
  const said = [node.lang, node.meta].filter(Boolean).join(" ");
  const colours = useColours(node.lang ?? "", node.value);
  return (
    <div className="plan-code" role="group" aria-label={said ? t("Code: {said}", { said }) : t("Code")}>
      {node.lang?.toLowerCase() === "mermaid" && node.value.trim() !== "" && <Suspense><Diagram code={node.value} /></Suspense>}
      {isFenced(node, plan.lines.text) && <Framed span={plan.lines.of(node)} plan={plan}><span className="label">{said || t("code")}</span></Framed>}
      {node.value !== "" && node.value.split("\n").map((line, at) => <Framed key={at} span={plan.lines.of(node, at + 1)} plan={plan}><code>{colours?.[at]?.map(({ text, kind }, place) => <span key={place} className={kind && `code-${kind}`}>{text}</span>) ?? line}{line === "" && " "}</code></Framed>)}
    </div>
  );
}

function Rows({ table, plan }: { table: Table; plan: Plan }) {
  const width = Math.max(...table.children.map((row) => row.children.length));
  const row = (at: number) => {
    const row = table.children[at];
    const span = row && plan.lines.of(row);
    if (!row || !span) return null;
    const { attributes, margin, tools, below } = plan.frame(span);
    const Cell = at === 0 ? "th" : "td";
    return (
      <Fragment key={at}>
      <tr {...attributes} className="group">
        {row.children.map((cell, place) => (
          <Cell key={place} scope={at === 0 ? "col" : undefined} style={{ textAlign: table.align?.[place] ?? undefined }}>
            {place === 0 && <>{margin}{noteAt(span, plan)}</>}
            {inner(cell, plan)}
          </Cell>
        ))}
        <td className="plan-tools" colSpan={1 + width - row.children.length}>{row.children.length === 0 && margin}{tools}</td>
      </tr>
      <tr className="plan-below"><td colSpan={1 + width}>{below}</td></tr>
      </Fragment>
    );
  };
  return (
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={t("Table")}>
      <table>
        <thead>{row(0)}</thead>
        <tbody>{table.children.slice(1).map((_, at) => row(at + 1))}</tbody>
      </table>
    </div>
  );
}

/** The lines of what is not drawn as what it is. */
function AsWritten({ node, plan }: { node: Nodes; plan: Plan }) {
  const { first, last } = spanOf(node);
  return Array.from({ length: last - first + 1 }, (_, at) => {
    const span = plan.lines.of(node, at);
    return <Fragment key={at}>{span && <Framed span={span} plan={plan}><code className="whitespace-pre-wrap">{plan.lines.text.slice(span.first - 1, span.last).join("\n")}</code></Framed>}</Fragment>;
  });
}
