import { useQuery } from "@tanstack/react-query";
import type { Plan, Schemas } from "../../api/client";
import { receiptQuery } from "../../api/queries";
import { useNow } from "../../lib/now";
import { dollars, lasting, many, t, visible } from "../../lib/t";
import { fateOf, FileDiff } from "../common/FileDiff";

/** What a plan's work cost, how long it took, and each file with what became of it: as it was observed, not as anybody says. */
export function Receipt({ id, plan }: { id: string; plan: Plan }) {
  const { data } = useQuery(receiptQuery(id, plan.planId));
  // The answer is that of the plan there is: after another began, it is not this one's.
  if (!data || data.planId !== plan.planId || !data.begun) return null;
  return (
    <div className="space-y-2 text-sm" data-testid="receipt">
      <p className="flex flex-wrap gap-x-3">
        <span><span className="label">{t("Took")}</span> <Took begun={data.begun} ended={data.ended} /></span>
        <span><span className="label">{t("Cost")}</span> {dollars(data.costMicros)}</span>
        {data.files.length > 0 && <span><span className="label">{t("Files")}</span> {byPath(data.files).length}</span>}
      </p>
      {byPath(data.files).map(([path, changes]) => (
        <details key={path} data-testid="receipt-file">
          <summary className="cursor-pointer">
            <code className="[overflow-wrap:anywhere]">{visible(path)}</code>{" "}
            <span className="text-soft">{changes[0] && fateOf({ ...changes[0], after: changes.at(-1)?.after ?? "" })}{changes.length > 1 && `, ${many(changes.length, "write", "writes")}`}</span>
          </summary>
          <div className="space-y-2 py-1">{changes.map((change) => <FileDiff key={change.call} change={change} />)}</div>
        </details>
      ))}
      {data.filesMore > 0 && <p className="text-soft">{t("{n} more changes are in the conversation.", { n: data.filesMore })}</p>}
    </div>
  );
}

/** How long it took, or has taken so far. */
function Took({ begun, ended }: { begun: string; ended?: string | null }) {
  const now = useNow(1_000);
  return <span>{lasting((ended ? Date.parse(ended) : now) - Date.parse(begun))}{!ended && t(" so far")}</span>;
}

type FileRow = Schemas["FileRowDto"];

/** The changes of each file, in the order in which the files were first written. */
export function byPath(files: FileRow[]): [string, FileRow[]][] {
  const all = new Map<string, FileRow[]>();
  for (const file of files) all.set(file.path, [...(all.get(file.path) ?? []), file]);
  return [...all];
}
