import { lazy } from "react";

/** A revision as what its Markdown means. What reads Markdown is loaded when there is some. */
export const Drawn = lazy(() => import("./Rendered").then(({ Rendered }) => ({ default: Rendered })));
