import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, got } from "../../api/client";
import { foundQuery, queries } from "../../api/queries";
import { dollars, t } from "../../lib/t";

interface Place {
  place: string;
  url: string;
  name: string;
  keyFrom?: string | null;
}
const KNOWN: Place[] = [
  { place: "Ollama, on this machine", url: "http://127.0.0.1:11434/v1", name: "qwen3" },
  { place: "OpenAI", url: "https://api.openai.com/v1", name: "gpt-5-mini" },
  { place: "OpenRouter", url: "https://openrouter.ai/api/v1", name: "anthropic/claude-sonnet-4.5" },
];

/** Which model is asked: it is chosen only once it has answered. What is likely to be there comes first. */
export function ModelForm({ done }: { done: () => void }) {
  const found = useQuery(foundQuery);
  const places: Place[] = [...(found.data ?? []), ...KNOWN.filter((one) => !found.data?.some((other) => other.place === one.place))];
  const [wish, setWish] = useState<Place>({ place: "", url: KNOWN[0]?.url ?? "", name: KNOWN[0]?.name ?? "" });
  const [apiKey, setKey] = useState("");
  const [touched, setTouched] = useState(false);
  const [state, setState] = useState<{ busy?: boolean; words?: string; bad?: boolean }>({});
  const likely = found.data?.[0];
  useEffect(() => {
    if (likely && !touched) setWish(likely);
  }, [likely, touched]);
  const set = (part: Partial<Place>) => {
    setTouched(true);
    setWish({ ...wish, keyFrom: null, ...part });
  };
  const choose = async () => {
    setState({ busy: true, words: t("Asking it one thing…") });
    try {
      const { url, name, keyFrom } = wish;
      const tried = await got(api.PUT("/api/model", { body: { url, name, apiKey, keyFrom: apiKey ? null : keyFrom } }));
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
        {places.map((one) => (
          <button key={one.place} type="button" className={`button small ${wish.url === one.url ? "!border-accent !text-accent" : ""}`} onClick={() => set(one)}>
            {found.data?.includes(one as never) ? t("{place} ✓ found", { place: one.place }) : one.place}
          </button>
        ))}
      </div>
      <label className="block text-sm font-medium">{t("Address, up to and without /chat/completions")}<input className="field mt-1" required value={wish.url} onChange={(event) => set({ url: event.target.value })} /></label>
      <label className="block text-sm font-medium">{t("Model")}<input className="field mt-1" required value={wish.name} onChange={(event) => set({ name: event.target.value, keyFrom: wish.keyFrom })} /></label>
      <label className="block text-sm font-medium">
        {wish.keyFrom ? t("Key (empty: the one in {variable})", { variable: wish.keyFrom }) : t("Key (leave it empty for a model on this machine)")}
        <input className="field mt-1" type="password" autoComplete="off" value={apiKey} onChange={(event) => setKey(event.target.value)} />
      </label>
      <button type="submit" className="button primary" disabled={state.busy}>{t("Test and use it")}</button>
      {state.words && <p role={state.bad ? "alert" : "status"} className={`text-sm ${state.bad ? "text-bad" : "text-good"}`} data-testid="model-test">{state.words}</p>}
    </form>
  );
}
