import { memo, type ReactNode } from "react";
import { visible } from "../../lib/t";

/** One line of a plan, drawn with its own characters: nothing is cut, nothing is interpreted. */
export const Line = memo(function Line({ text }: { text: string }) {
  const shown = visible(text);
  const heading = /^(#{1,6}) (.*)$/.exec(shown);
  if (heading) {
    return (
      <span className="font-semibold">
        <span className="text-soft">{heading[1]} </span>
        {spans(heading[2] ?? "")}
      </span>
    );
  }
  const step = /^(\s*)(\d+[.)]|[-*+]) (.*)$/.exec(shown);
  if (step) {
    return (
      <span>
        {step[1]}
        <span className="font-semibold text-accent">{step[2]}</span> {spans(step[3] ?? "")}
      </span>
    );
  }
  return <span>{spans(shown)}</span>;
});

/** Code and bold, with their marks left where they are. */
function spans(text: string): ReactNode[] {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part, at) => {
    if (part.startsWith("`") && part.length > 2) {
      return <code key={at} className="rounded bg-sunken px-1 font-mono text-[0.9em]">{part}</code>;
    }
    if (part.startsWith("**") && part.length > 4) return <strong key={at}>{part}</strong>;
    return part;
  });
}
