import { useState } from "react";
import { api, got } from "../api/client";
import { queries } from "../api/queries";
import { dollars, t } from "../t";

const KNOWN: [string, string, string][] = [
  ["Ollama, on this machine", "http://127.0.0.1:11434/v1", "qwen3"],
  ["OpenAI", "https://api.openai.com/v1", "gpt-5-mini"],
  ["OpenRouter", "https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5"],
];

/** Which model is asked: it is chosen only once it has answered. */
export function ModelForm({ done }: { done: () => void }) {
  const [url, setUrl] = useState(KNOWN[0]?.[1] ?? "");
  const [name, setName] = useState(KNOWN[0]?.[2] ?? "");
  const [apiKey, setKey] = useState("");
  const [state, setState] = useState<{ busy?: boolean; words?: string; bad?: boolean }>({});
  const choose = async () => {
    setState({ busy: true, words: t("Asking it one thing…") });
    try {
      const tried = await got(api.PUT("/api/model", { body: { url, name, apiKey } }));
      const cost = tried.costMicros == null ? "" : `, ${dollars(tried.costMicros)}`;
      setState({ words: t("✓ answered in {time} s{cost}", { time: (tried.tookMs / 1000).toFixed(1), cost }) });
      void queries.invalidateQueries({ queryKey: ["model"] });
      done();
    } catch (problem) {
      setState({ bad: true, words: problem instanceof Error ? problem.message : String(problem) });
    }
  };
  return (
    <form
      className="space-y-3"
      onSubmit={(event) => {
        event.preventDefault();
        void choose();
      }}
    >
      <div className="flex flex-wrap gap-2">
        {KNOWN.map(([words, address, model]) => (
          <button key={words} type="button" className={`button small ${url === address ? "!border-accent !text-accent" : ""}`} onClick={() => { setUrl(address); setName(model); }}>{words}</button>
        ))}
      </div>
      <label className="block text-sm font-medium">{t("Address, up to and without /chat/completions")}<input className="field mt-1" required value={url} onChange={(event) => setUrl(event.target.value)} /></label>
      <label className="block text-sm font-medium">{t("Model")}<input className="field mt-1" required value={name} onChange={(event) => setName(event.target.value)} /></label>
      <label className="block text-sm font-medium">{t("Key (leave it empty for a model on this machine)")}<input className="field mt-1" type="password" autoComplete="off" value={apiKey} onChange={(event) => setKey(event.target.value)} /></label>
      <button type="submit" className="button primary" disabled={state.busy}>{t("Test and use it")}</button>
      {state.words && <p role={state.bad ? "alert" : "status"} className={`text-sm ${state.bad ? "text-bad" : "text-good"}`} data-testid="model-test">{state.words}</p>}
    </form>
  );
}
