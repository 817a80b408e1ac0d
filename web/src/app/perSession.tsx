import { useParams } from "@tanstack/react-router";
import type { ComponentType } from "react";

/** A screen of one session, mounted anew for each: no state of one session is ever on the screen of another. */
export function perSession(Screen: ComponentType<{ id: string }>) {
  return function SessionRoute() {
    const { id = "" } = useParams({ strict: false });
    return <Screen key={id} id={id} />;
  };
}
