import type { ReactNode } from "react";
import { useReachable } from "../../api/reachable";
import { t } from "../../lib/t";

/** Buttons that decide something: off while the server cannot be reached, and back by themselves. */
export function Decisions({ children }: { children: ReactNode }) {
  const reachable = useReachable();
  return (
    <fieldset disabled={!reachable} className="contents">
      {!reachable && <p role="status" className="w-full text-sm text-wait max-md:col-span-2" data-testid="unreachable">{t("The server cannot be reached, so nothing can be decided. The buttons come back when it answers.")}</p>}
      {children}
    </fieldset>
  );
}
