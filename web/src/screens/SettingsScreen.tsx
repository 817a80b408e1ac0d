import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "../api/client";
import { keepPageKey } from "../api/pageKey";
import { listsMoved, meQuery, modelQuery, tokensQuery } from "../api/queries";
import { Chip, say } from "../parts/basics";
import { ModelForm } from "../parts/ModelForm";
import { ChangePassphrase, People } from "../parts/People";
import { writeText } from "../storage";
import { t, visible } from "../t";

/** The model, who is logged in, and how it looks. */
export function SettingsScreen() {
  const { data: me } = useQuery(meQuery);
  const { data: model } = useQuery(modelQuery);
  const tokens = useQuery(tokensQuery);
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "light");
  const choose = (name: string) => {
    writeText("theme", name);
    document.documentElement.dataset.theme = name;
    setTheme(name);
  };
  const logOut = async () => {
    await got(api.POST("/api/logout")).catch(() => {});
    keepPageKey(null);
    location.assign("/login");
  };
  const revoke = async (id: string) => {
    await got(api.DELETE("/api/tokens/{id}", { params: { path: { id } } })).then(() => say(t("Taken back"), "good"), (problem: Error) => say(problem.message, "bad"));
    void tokens.refetch();
    listsMoved();
  };
  return (
    <div className="mx-auto w-full max-w-3xl space-y-6 p-4">
      <h1 className="text-lg font-semibold">{t("Settings")}</h1>
      <section className="card p-4">
        <h2 className="font-semibold">{t("Model")}</h2>
        <p className="mb-3 text-sm text-soft">{model?.isDemo ? t("Demo: a script, no network.") : t("{name} at {url}", { name: model?.name ?? "", url: model?.url ?? t("the operator's choice") })}</p>
        {model?.isChangeable && me?.decides && <ModelForm done={() => say(t("This model is asked from now on"), "good")} />}
        {model && !model.isChangeable && <p className="text-sm text-soft">{t("It is set in the configuration of this installation.")}</p>}
        {me && !me.decides && <p className="text-sm text-soft">{t("Changing it is a decision: log in with the passphrase.")}</p>}
      </section>
      <section className="card p-4">
        <h2 className="font-semibold">{t("Appearance")}</h2>
        <div role="radiogroup" aria-label={t("Appearance")} className="mt-2 flex gap-2">
          {[["light", t("Light")], ["dark", t("Dark")]].map(([name = "", words]) => (
            <button key={name} type="button" role="radio" aria-checked={theme === name} className={`button small ${theme === name ? "!border-accent !text-accent" : ""}`} onClick={() => choose(name)}>{words}</button>
          ))}
        </div>
      </section>
      <section className="card p-4">
        <h2 className="font-semibold">{t("You")}</h2>
        <p className="text-sm text-soft">{me ? t("{person}, {right}; version {version}", { person: me.person, right: me.decides ? t("may decide") : t("may read and talk"), version: me.version }) : ""}</p>
        <button type="button" className="button small mt-2" onClick={() => void logOut()}>{t("Log out")}</button>
        <ChangePassphrase />
      </section>
      <People />
      <section className="card p-4">
        <h2 className="font-semibold">{t("Logins and tokens")}</h2>
        <ul className="mt-2 space-y-1 text-sm">
          {tokens.data?.map((token) => (
            <li key={token.id} className="flex flex-wrap items-center gap-2">
              <span className="font-medium">{visible(token.name)}</span>
              <span className="text-soft">{token.person} · {token.decides ? t("decides") : t("speaks")} · {token.expires ? t("until {time}", { time: new Date(token.expires).toLocaleString() }) : t("until taken back")}</span>
              {token.id === me?.grant ? <Chip tone="run">{t("this one")}</Chip> : me?.decides && <button type="button" className="button quiet small" onClick={() => void revoke(token.id)}>{t("Take back")}</button>}
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}
