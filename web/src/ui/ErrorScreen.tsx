import { Component, type ReactNode } from "react";
import { t } from "../lib/t";

/** A part of the page that is not there: an upgrade of the server removes what older pages name. */
const isMissingPart = (error: unknown) => error instanceof Error && /dynamically imported module|Importing a module script|preload/i.test(error.message);

/** What stands in place of a screen that failed. Drafts and notes are kept by the browser, so that reloading loses nothing. */
export function ErrorScreen({ error }: { error: unknown }) {
  return (
    <div role="alert" className="mx-auto flex max-w-md flex-col items-center gap-3 px-6 py-16 text-center" data-testid="screen-error">
      <p className="font-medium">
        {isMissingPart(error)
          ? t("This part of the page could not be loaded: the server was upgraded, or cannot be reached.")
          : t("This screen failed: {error}", { error: error instanceof Error ? error.message : String(error) })}
      </p>
      <button type="button" className="button primary" onClick={() => location.reload()}>{t("Reload the page")}</button>
    </div>
  );
}

/** Shows something else where a part fails. */
export class ErrorBoundary extends Component<{ children: ReactNode; fallback: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    return this.state.hasFailed ? this.props.fallback : this.props.children;
  }
}
