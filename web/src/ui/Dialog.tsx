import { useLayoutEffect, useRef, useState, type ReactNode } from "react";
import { t } from "../lib/t";

interface Props {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
  wide?: boolean;
}

/** A dialog of the browser's own: focus stays in it while it is open, and goes back to where it was. */
export function Dialog({ open, ...props }: Props) {
  return open ? <OpenDialog {...props} /> : null;
}

/** What was typed into each field of a dialog. */
const typed = (dialog: HTMLDialogElement | null) =>
  [...(dialog?.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>("input, textarea") ?? [])].map((field) => field.value).join("\n");

function OpenDialog({ title, onClose, children, wide = false }: Omit<Props, "open">) {
  const box = useRef<HTMLDialogElement>(null);
  const atFirst = useRef("");
  const [isKept, setKept] = useState(false);
  useLayoutEffect(() => {
    const dialog = box.current;
    dialog?.showModal();
    atFirst.current = typed(dialog);
    // Closed while it is still there: the browser gives the focus back then, and not to a dialog that is gone.
    return () => dialog?.close();
  }, []);
  // What was typed is dropped by a button that says so, and not by a key or a click beside it.
  const leave = (event: { preventDefault: () => void }) => {
    event.preventDefault();
    if (typed(box.current) !== atFirst.current && !isKept) setKept(true);
    else onClose();
  };
  const begun = useRef<EventTarget | null>(null);
  return (
    <dialog
      ref={box}
      aria-label={title}
      onCancel={leave}
      onClose={onClose}
      onPointerDown={(event) => { begun.current = event.target; }}
      onClick={(event) => {
        // A selection that ends beside the dialog began in it.
        if (event.target === box.current && begun.current === box.current) leave(event);
      }}
      className={`card w-[94vw] p-0 shadow-2xl ${wide ? "max-w-[46rem]" : "max-w-[30rem]"}`}
    >
      <div className="p-5">
        <h2 className="mb-3 text-lg font-semibold">{title}</h2>
        {children}
        {isKept && <p role="status" className="mt-3 text-sm text-wait" data-testid="unsent">{t("What you typed was not sent. Escape again, or a click beside this, drops it.")}</p>}
      </div>
    </dialog>
  );
}
