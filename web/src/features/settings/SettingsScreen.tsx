import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, type Schemas } from "../../api/client";
import { keepPageKey } from "../../api/pageKey";
import { listsMoved, meQuery, modelQuery, tokensQuery, usageQuery } from "../../api/queries";
import { Chip, isMostUsed, say } from "../../ui/basics";
import { ModelForm } from "../common/ModelForm";
import { ChangePassphrase, People } from "./People";
import { chooseTheme, chosenTheme, THEMES, type Theme } from "../../lib/theme";
import { dollars, t, visible } from "../../lib/t";

/** The model, who is logged in, and how it looks. */
export function SettingsScreen() {
  const { data: me } = useQuery(meQuery);
  const { data: model } = useQuery(modelQuery);
  const tokens = useQuery(tokensQuery);
  const { data: usage } = useQuery({ ...usageQuery, refetchInterval: 10_000 });
  const [theme, setTheme] = useState(chosenTheme);
  const choose = (next: Theme) => {
    chooseTheme(next);
    setTheme(next);
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
      {usage && (
        <section className="card p-4" data-testid="usage">
          <h2 className="font-semibold">{t("What you use")}</h2>
          <dl className="mt-2 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 text-sm">
            <Meter name={t("Money today")} meter={usage.money} words={dollars} />
            <Meter name={t("Tokens today")} meter={usage.tokens} words={(n) => n.toLocaleString()} />
            <Meter name={t("Turns under way")} meter={usage.turns} words={String} />
            <Meter name={t("Stored")} meter={usage.bytes} words={(n) => t("{n} MB", { n: (n / 1e6).toFixed(1) })} />
          </dl>
          <p className="mt-2 text-sm text-soft">{t("A day is counted in UTC and ends at {time}. At 80 % you are told, at 100 % the turn waits and asks you.", { time: new Date(usage.until).toLocaleString() })}</p>
          {!usage.priced && <p className="text-sm text-soft">{t("The price of a model is not known, so money is not counted for it.")}</p>}
          <p className="text-sm text-soft">{t("Limits are set in the configuration of this installation, under [limits].")}</p>
        </section>
      )}
      <section className="card p-4">
        <h2 className="font-semibold">{t("Appearance")}</h2>
        <fieldset className="mt-2 flex flex-wrap gap-4 text-sm">
          <legend className="sr-only">{t("Appearance")}</legend>
          {THEMES.map((name) => (
            <label key={name} className="flex min-h-8 items-center gap-2">
              <input type="radio" name="theme" checked={theme === name} onChange={() => choose(name)} />
              {{ system: t("As the system"), light: t("Light"), dark: t("Dark") }[name]}
            </label>
          ))}
        </fieldset>
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

/** How much of something is used, and how much may be. */
function Meter({ name, meter, words }: { name: string; meter: Schemas["MeterDto"]; words: (amount: number) => string }) {
  const limit = meter.max === null || meter.max === undefined ? t("not limited") : t("of {max}", { max: words(meter.max) });
  return (
    <>
      <dt className="text-soft">{name}</dt>
      <dd className={isMostUsed(meter) ? "font-medium text-wait" : ""}>{words(meter.used)} <span className="text-soft">{limit}</span></dd>
    </>
  );
}
