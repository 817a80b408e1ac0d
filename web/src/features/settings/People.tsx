import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, type PersonRow } from "../../api/client";
import { meQuery, peopleQuery } from "../../api/queries";
import { t, visible } from "../../lib/t";
import { say } from "../../ui/basics";

type Role = PersonRow["roles"][number];
const ROLES: Role[] = ["decide", "admin"];

const told = (problem: unknown) => say(problem instanceof Error ? problem.message : String(problem), "bad");

/** Who uses the installation, and what each may do. */
export function People() {
  const { data: me } = useQuery(meQuery);
  const people = useQuery(peopleQuery);
  const [name, setName] = useState("");
  const [roles, setRoles] = useState<Role[]>(["decide"]);
  const [link, setLink] = useState<{ name: string; link: string }>();
  const [isBusy, setBusy] = useState(false);
  // One change after the other: the next one begins with what the last one left.
  const change = async (does: () => Promise<unknown>, done: string) => {
    setBusy(true);
    try {
      await does();
      if (done) say(done, "good");
    } catch (problem) {
      told(problem);
    }
    await people.refetch();
    setBusy(false);
  };
  const add = () =>
    change(async () => {
      const given = await got(api.POST("/api/people", { body: { name, roles } }));
      setLink({ name, link: given.link });
      setName("");
    }, "");
  const invite = (person: string) =>
    change(async () => setLink({ name: person, link: (await got(api.POST("/api/people/{name}/invitation", { params: { path: { name: person } } }))).link }), "");
  const remove = (person: string) => {
    if (!confirm(t("Remove {person}? Their logins and tokens end; their sessions stay.", { person: visible(person) }))) return;
    void change(() => got(api.DELETE("/api/people/{name}", { params: { path: { name: person } } })), t("Removed"));
  };
  const toggle = (person: PersonRow, role: Role) => {
    const has = person.roles.includes(role);
    const next = has ? person.roles.filter((other) => other !== role) : [...person.roles, role];
    void change(() => got(api.PATCH("/api/people/{name}", { params: { path: { name: person.name } }, body: { roles: next } })), t("Changed"));
  };
  if (!me?.roles.includes("admin")) return null;
  return (
    <section className="card p-4" data-testid="people">
      <h2 className="font-semibold">{t("People")}</h2>
      <ul className="mt-2 space-y-2 text-sm">
        {people.data?.map((person) => (
          <li key={person.name} className="flex flex-wrap items-center gap-x-3 gap-y-1" data-person={person.name}>
            <span className="font-medium">{visible(person.name)}</span>
            {person.name === "owner" ? (
              <span className="text-soft">{t("owns this installation")}</span>
            ) : (
              <>
                {ROLES.map((role) => (
                  <label key={role} className="flex items-center gap-1">
                    <input type="checkbox" disabled={isBusy} checked={person.roles.includes(role)} onChange={() => toggle(person, role)} />
                    {role === "decide" ? t("decides") : t("manages people")}
                  </label>
                ))}
                <span className="text-soft">{person.hasPassphrase ? "" : t("has not chosen a passphrase")}</span>
                <button type="button" className="button quiet small" disabled={isBusy} onClick={() => void invite(person.name)}>{t("New link")}</button>
                <button type="button" className="button quiet small" disabled={isBusy} onClick={() => remove(person.name)}>{t("Remove")}</button>
              </>
            )}
          </li>
        ))}
      </ul>
      <form
        className="mt-3 flex flex-wrap items-end gap-3 border-t border-line pt-3 text-sm"
        onSubmit={(event) => {
          event.preventDefault();
          void add();
        }}
      >
        <label className="font-medium">
          {t("Name")}
          <input className="field mt-1" required maxLength={80} value={name} onChange={(event) => setName(event.target.value)} />
        </label>
        {ROLES.map((role) => (
          <label key={role} className="flex items-center gap-1 pb-2">
            <input type="checkbox" checked={roles.includes(role)} onChange={(event) => setRoles(event.target.checked ? [...roles, role] : roles.filter((other) => other !== role))} />
            {role === "decide" ? t("decides") : t("manages people")}
          </label>
        ))}
        <button type="submit" className="button small" disabled={isBusy}>{t("Invite")}</button>
      </form>
      {link && (
        <p className="mt-3 break-all text-sm" data-testid="invitation">
          {t("Give {person} this link. It works once, for seven days, and is not shown again:", { person: visible(link.name) })} <code>{link.link}</code>
        </p>
      )}
    </section>
  );
}

/** Changes one's own passphrase. */
export function ChangePassphrase() {
  const { data: me } = useQuery(meQuery);
  const [old, setOld] = useState("");
  const [passphrase, setPassphrase] = useState("");
  const [again, setAgain] = useState("");
  const [words, setWords] = useState("");
  const change = async () => {
    if (passphrase !== again) return setWords(t("The two differ."));
    try {
      await got(api.PUT("/api/passphrase", { body: { old, passphrase } }));
      location.assign("/login");
    } catch (problem) {
      setWords(problem instanceof Error ? problem.message : String(problem));
    }
  };
  if (!me?.passphraseChosen) return null;
  return (
    <details className="mt-3 text-sm">
      <summary className="cursor-pointer font-medium">{t("Change the passphrase")}</summary>
      <form
        className="mt-2 max-w-sm space-y-2"
        onSubmit={(event) => {
          event.preventDefault();
          void change();
        }}
      >
        {([[t("Current passphrase"), old, setOld, "current-password"], [t("New passphrase"), passphrase, setPassphrase, "new-password"], [t("Once more"), again, setAgain, "new-password"]] as const).map(([label, value, set, complete]) => (
          <label key={label} className="block font-medium">
            {label}
            <input className="field mt-1" type="password" required autoComplete={complete} value={value} onChange={(event) => set(event.target.value)} />
          </label>
        ))}
        {words && <p role="alert" className="text-bad">{words}</p>}
        <p className="text-soft">{t("Every login of yours ends; log in again with the new one.")}</p>
        <button type="submit" className="button small">{t("Change it")}</button>
      </form>
    </details>
  );
}
