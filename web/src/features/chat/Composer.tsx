import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { api, got, inSession, isUnknown, problemWords } from "../../api/client";
import { storeOf } from "../../session/store";
import { isRecord, readJson, writeText } from "../../lib/storage";
import { t } from "../../lib/t";
import { say, useKept } from "../../ui/basics";
import { line, verdicts } from "../common/verdicts";

/** How long a message waits for its answer before it counts as lost. */
const ANSWER_MS = 20_000;

type Sent = { text: string; key: string };
const isSent = (value: unknown): value is Sent => isRecord(value) && typeof value.text === "string" && typeof value.key === "string";

/** The key of a draft, kept beside it until the draft is changed: the same draft sent again, after no answer came, is the same message. */
function draftKey(id: string, text: string): string {
  const sent = readJson(`sent:${id}`, isSent);
  if (sent?.text === text) return sent.key;
  const key = crypto.randomUUID();
  writeText(`sent:${id}`, JSON.stringify({ text, key }));
  return key;
}

/** What a person writes. A draft is kept for its session until it is sent. */
export function Composer({ id, running, planning }: { id: string; running: boolean; planning: boolean }) {
  const [draft, setDraft] = useKept(`draft:${id}`, "");
  const [busy, setBusy] = useState(false);
  const navigate = useNavigate();
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
    const key = draftKey(id, text);
    try {
      if (text.startsWith("/")) {
        const answer = await line(id, text, key);
        storeOf(id).answer(text, answer.text.trimEnd(), false);
        if (answer.movedTo) void navigate({ to: "/s/$id", params: { id: answer.movedTo } });
      } else {
        const params = { ...inSession(id), header: { "Idempotency-Key": key } };
        await got(api.POST("/api/sessions/{id}/messages", { params, body: { text }, signal: AbortSignal.timeout(ANSWER_MS) }));
      }
      setDraft("");
      writeText(`sent:${id}`, null);
    } catch (problem) {
      const isSettled = !isUnknown(problem);
      if (isSettled) writeText(`sent:${id}`, null);
      // A command is answered where it was typed, also with a refusal.
      if (isSettled && text.startsWith("/")) storeOf(id).answer(text, `✗ ${problemWords(problem)}`, true);
      else say(problemWords(problem), "bad");
    } finally {
      setBusy(false);
      box.current?.focus();
    }
  };
  return (
    <form
      className="@container border-t border-line bg-raised px-4 py-3 md:px-6"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <div className="mx-auto flex max-w-3xl flex-wrap items-end gap-2 @lg:flex-nowrap">
        <button type="button" aria-pressed={planning} title={t("Plan work: nothing is changed before you approve")} className={`button small shrink-0 max-sm:!px-2 ${planning ? "!border-accent !bg-tint !text-accent" : ""}`} onClick={() => void (planning ? verdicts.off(id) : verdicts.on(id, "document"))}>
          {planning ? t("Plan: on") : t("Plan: off")}
        </button>
        <textarea
          ref={box}
          rows={1}
          className="field max-h-56 min-w-0 flex-1 basis-full resize-none @max-lg:order-first @lg:basis-0"
          aria-label={t("Message")}
          placeholder={planning ? t("What should be planned?") : t("Message, or / …")}
          value={draft}
          readOnly={busy}
          onChange={(event) => {
            setDraft(event.target.value);
            writeText(`sent:${id}`, null);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
              event.preventDefault();
              void send();
            }
          }}
        />
        {running && <button type="button" className="button small danger shrink-0" onClick={() => void verdicts.stop(id)}>{t("Stop")}</button>}
        <button type="submit" className="button small primary ml-auto shrink-0 @lg:ml-0" disabled={!draft.trim() || busy}>{t("Send")}</button>
      </div>
    </form>
  );
}
