import { useEffect, useRef, useState } from "react";
import { api, got, inSession, once } from "../api/client";
import { t } from "../t";
import { say, useKept } from "./basics";
import { line, verdicts } from "./verdicts";

/** What a person writes. A draft is kept for its session until it is sent. */
export function Composer({ id, running, planning }: { id: string; running: boolean; planning: boolean }) {
  const [draft, setDraft] = useKept(`draft:${id}`, "");
  const [busy, setBusy] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(220, element.scrollHeight)}px`;
  }, [draft]);
  const send = async () => {
    const text = draft.trim();
    if (!text || busy) return;
    setBusy(true);
    setDraft("");
    try {
      if (text.startsWith("/")) await line(id, text);
      else await got(api.POST("/api/sessions/{id}/messages", { params: { ...inSession(id), header: once() }, body: { text } }));
    } catch (problem) {
      setDraft(text);
      say(problem instanceof Error ? problem.message : String(problem), "bad");
    } finally {
      setBusy(false);
      box.current?.focus();
    }
  };
  return (
    <form
      className="border-t border-line bg-raised px-4 py-3 md:px-6"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <div className="mx-auto flex max-w-3xl items-end gap-2">
        <button type="button" aria-pressed={planning} title={t("Plan work: nothing is changed before you approve")} className={`button small shrink-0 max-sm:!px-2 ${planning ? "!border-accent !bg-tint !text-accent" : ""}`} onClick={() => void (planning ? verdicts.off(id) : verdicts.on(id))}>
          {planning ? t("Plan: on") : t("Plan: off")}
        </button>
        <textarea
          ref={box}
          rows={1}
          className="field max-h-56 min-w-0 flex-1 resize-none"
          aria-label={t("Message")}
          placeholder={planning ? t("What should be planned?") : t("Message, or / …")}
          value={draft}
          onChange={(event) => setDraft(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
              event.preventDefault();
              void send();
            }
          }}
        />
        {running && <button type="button" className="button small danger shrink-0" onClick={() => void verdicts.stop(id)}>{t("Stop")}</button>}
        <button type="submit" className="button small primary shrink-0" disabled={!draft.trim() || busy}>{t("Send")}</button>
      </div>
    </form>
  );
}
