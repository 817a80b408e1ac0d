import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState, type ReactNode } from "react";
import { backTo } from "../../lib/back";
import { api, got } from "../../api/client";
import { keepPageKey } from "../../api/pageKey";
import { meQuery, modelQuery, queries, usageQuery } from "../../api/queries";
import { ModelForm } from "../common/ModelForm";
import { readText, writeText } from "../../lib/storage";
import { dollars, t } from "../../lib/t";

function Frame({ children }: { children: ReactNode }) {
  return (
    <main className="flex min-h-full items-center justify-center px-4 py-10">
      <div className="w-full max-w-md space-y-5">
        <div className="flex items-center gap-3">
          <img src="/mark.svg" alt="" width="36" height="36" />
          <span className="text-xl font-semibold">Planwright</span>
        </div>
        {children}
      </div>
    </main>
  );
}

/** The secret of this name that a link carries behind the #, which is never sent to a server. */
const carried = (name: string) => new RegExp(`^#${name}=(\\w+)$`).exec(location.hash)?.[1];

/** With the passphrase one decides; with a token one reads and talks; with an invitation one chooses a passphrase first. */
export function LoginScreen() {
  const [invitation, setInvitation] = useState<string>();
  const [way, setWay] = useState<"passphrase" | "token" | "invitation">("passphrase");
  const [again, setAgain] = useState("");
  const [secret, setSecret] = useState("");
  const [token, setToken] = useState("");
  const [person, setPerson] = useState(() => readText("person") ?? "");
  const [words, setWords] = useState("");
  const enter = async (body: { passphrase?: string; token?: string; person?: string }) => {
    setWords("");
    try {
      const { pageKey } = await got(api.POST("/api/login", { body }));
      if (!keepPageKey(pageKey)) return setWords(t("This browser does not let the page keep its key. Allow this site to store data, then log in again."));
      writeText("person", body.person ?? null);
      const back = new URLSearchParams(location.search).get("back");
      // A page of its own: nothing that another person's page knew, and no stream of theirs, is left.
      location.replace(backTo(back, location.origin));
    } catch (problem) {
      setWords(problem instanceof Error ? problem.message : String(problem));
    }
  };
  useEffect(() => {
    // A link may be opened where this page is already.
    const take = () => {
      const [token, link] = [carried("token"), carried("invitation")];
      if (!token && !link) return;
      history.replaceState(null, "", "/login");
      if (token) return void enter({ token });
      setInvitation(link);
      setWay("invitation");
    };
    take();
    window.addEventListener("hashchange", take);
    return () => window.removeEventListener("hashchange", take);
  }, []);
  const submit = async () => {
    if (way === "token") return enter({ token });
    if (way === "invitation") {
      if (secret !== again) return setWords(t("The two differ."));
      try {
        const chosen = await got(api.POST("/api/passphrase", { body: { passphrase: secret, invitation } }));
        return enter({ passphrase: secret, person: chosen.person });
      } catch (problem) {
        return setWords(problem instanceof Error ? problem.message : String(problem));
      }
    }
    return enter({ passphrase: secret, person: person.trim() || undefined });
  };
  return (
    <Frame>
      <form
        className="card space-y-4 p-6"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <h1 className="text-lg font-semibold">{way === "invitation" ? t("Choose a passphrase") : t("Log in")}</h1>
        {way === "invitation" && <p className="text-sm text-soft">{t("Deciding on a plan asks for it. At least 8 characters.")}</p>}
        {way !== "token" && (
          <label className="block text-sm font-medium">
            {t("Passphrase")}
            <input className="field mt-1" type="password" required minLength={way === "invitation" ? 8 : 1} autoFocus autoComplete={way === "invitation" ? "new-password" : "current-password"} value={secret} onChange={(event) => setSecret(event.target.value)} />
          </label>
        )}
        {way === "invitation" && (
          <label className="block text-sm font-medium">
            {t("Once more")}
            <input className="field mt-1" type="password" required autoComplete="new-password" value={again} onChange={(event) => setAgain(event.target.value)} />
          </label>
        )}
        {way === "token" && (
          <label className="block text-sm font-medium">
            {t("Token, from the file named token in the data directory")}
            <input className="field mt-1" type="password" required autoComplete="off" value={token} onChange={(event) => setToken(event.target.value)} />
          </label>
        )}
        {way === "passphrase" && (
          <label className="block text-sm font-medium">
            {t("Your name, if more than one person uses this (optional)")}
            <input className="field mt-1" autoComplete="username" value={person} onChange={(event) => setPerson(event.target.value)} />
          </label>
        )}
        {words && <p role="alert" className="text-sm text-bad">{words}</p>}
        <button type="submit" className="button primary w-full">{way === "invitation" ? t("Choose it and log in") : t("Log in")}</button>
        <div className="flex flex-wrap justify-between gap-2 text-sm">
          {(["passphrase", "token"] as const).filter((other) => other !== way).map((other) => (
            <button key={other} type="button" className="text-accent underline" onClick={() => setWay(other)}>
              {{ passphrase: t("With the passphrase"), token: t("Only read and talk, with a token") }[other]}
            </button>
          ))}
        </div>
        {way === "passphrase" && <p className="text-sm text-soft">{t("First time here? Open the link that planwright up printed, or run planwright passphrase in a terminal.")}</p>}
      </form>
    </Frame>
  );
}

/** The first steps. They end with a model that answered, or with the demo; not before. */
export function WelcomeScreen() {
  const navigate = useNavigate();
  const { data: me } = useQuery(meQuery);
  const { data: model } = useQuery(modelQuery);
  const { data: usage } = useQuery(usageQuery);
  const [answered, setAnswered] = useState(false);
  const [words, setWords] = useState("");
  const ready = answered || (model?.isDemo ?? false);
  const demo = async () => {
    try {
      await got(api.PUT("/api/model", { body: { demo: true } }));
      await queries.invalidateQueries({ queryKey: ["model"] });
      setAnswered(true);
    } catch (problem) {
      setWords(problem instanceof Error ? problem.message : String(problem));
    }
  };
  return (
    <Frame>
      <div className="card space-y-4 p-6">
        <h1 className="text-lg font-semibold">{t("Which model should write the plans?")}</h1>
        <p className="text-sm text-soft">{t("It is asked one thing before it is used, so that you do not start with one that cannot answer. A run may spend 1 $ unless you say otherwise.")} {usage?.money.max ? t("A day may cost {max} in all; then it pauses and asks you.", { max: dollars(usage.money.max) }) : t("What a day may cost is not limited.")}</p>
        {me && !me.decides ? <p className="text-sm text-wait">{t("Choosing a model is a decision: log in with the passphrase.")}</p> : <ModelForm done={() => setAnswered(true)} />}
        <div className="flex items-center gap-3 border-t border-line pt-4">
          <button type="button" className="button" onClick={() => void demo()} disabled={me && !me.decides}>{t("Play the demo instead")}</button>
          <span className="text-sm text-soft">{t("A script: no key, no network.")}</span>
        </div>
        {words && <p role="alert" className="text-sm text-bad">{words}</p>}
      </div>
      <button type="button" className="button primary w-full" disabled={!ready} onClick={() => void navigate({ to: "/", search: { begin: true } })} data-testid="finish">{ready ? t("Begin") : t("Begin, once a model answered")}</button>
    </Frame>
  );
}
