import { useEffect, useState } from "react";
import { answerAsks } from "../../api/again";
import { api, got, problemWords } from "../../api/client";
import { t } from "../../lib/t";
import { Dialog } from "../../ui/Dialog";

type Asking = { words: string; done: (given: boolean) => void };

/** Asks for the passphrase where a decision needs one that was given lately, and then lets the decision go on. */
export function PassphraseAgain() {
  const [asking, setAsking] = useState<Asking>();
  const [passphrase, setPassphrase] = useState("");
  const [words, setWords] = useState("");
  useEffect(() => {
    answerAsks((why) => new Promise((done) => setAsking({ words: why, done })));
    return () => answerAsks(undefined);
  }, []);
  const end = (given: boolean) => {
    asking?.done(given);
    setAsking(undefined);
    setPassphrase("");
    setWords("");
  };
  const give = async () => {
    try {
      await got(api.POST("/api/authenticate", { body: { passphrase } }));
      end(true);
    } catch (problem) {
      setWords(problemWords(problem));
    }
  };
  return (
    <Dialog title={t("Your passphrase, once more")} open={!!asking} onClose={() => end(false)}>
      <form
        className="space-y-3 text-sm"
        data-testid="passphrase-again"
        onSubmit={(event) => {
          event.preventDefault();
          void give();
        }}
      >
        <p className="text-soft">{asking?.words}</p>
        <label className="block font-medium">
          {t("Passphrase")}
          <input className="field mt-1" type="password" required autoFocus autoComplete="current-password" value={passphrase} onChange={(event) => setPassphrase(event.target.value)} />
        </label>
        {words && <p role="alert" className="text-bad">{words}</p>}
        <div className="flex justify-end gap-2">
          <button type="button" className="button" onClick={() => end(false)}>{t("Not now")}</button>
          <button type="submit" className="button primary">{t("Go on")}</button>
        </div>
      </form>
    </Dialog>
  );
}
