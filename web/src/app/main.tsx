import { QueryClientProvider, useQuery } from "@tanstack/react-query";
import { createRootRoute, createRoute, createRouter, Outlet, RouterProvider, useNavigate } from "@tanstack/react-router";
import { lazy, StrictMode, Suspense, useEffect, useRef } from "react";
import { createRoot } from "react-dom/client";
import { modelQuery, queries, sessionsQuery } from "../api/queries";
import { Empty, Skeleton } from "../ui/basics";
import { ErrorScreen } from "../ui/ErrorScreen";
import { perSession } from "./perSession";
import { Shell, useNewSession } from "./Shell";
import { Approvals } from "../features/inbox/Approvals";
import { SessionScreen } from "./SessionScreen";
import { applyTheme, chosenTheme } from "../lib/theme";
import { t } from "../lib/t";
import "../ui/styles.css";

const entry = () => import("../features/access/entry");
const ReviewScreen = lazy(() => import("../features/review/ReviewScreen").then(({ ReviewScreen }) => ({ default: ReviewScreen })));
const WorkScreen = lazy(() => import("../features/runs/WorkScreen").then(({ WorkScreen }) => ({ default: WorkScreen })));
const NotebookScreen = lazy(() => import("../features/notebook/NotebookScreen").then(({ NotebookScreen }) => ({ default: NotebookScreen })));
const MemoryScreen = lazy(() => import("../features/memory/MemoryScreen").then(({ MemoryScreen }) => ({ default: MemoryScreen })));
const SessionsScreen = lazy(() => import("../features/sessions/SessionsScreen").then(({ SessionsScreen }) => ({ default: SessionsScreen })));
const SettingsScreen = lazy(() => import("../features/settings/SettingsScreen").then(({ SettingsScreen }) => ({ default: SettingsScreen })));
const LoginScreen = lazy(() => entry().then((all) => ({ default: all.LoginScreen })));
const WelcomeScreen = lazy(() => entry().then((all) => ({ default: all.WelcomeScreen })));

applyTheme(chosenTheme());

/** To the newest session, or to the first steps. */
function Home() {
  const rows = useQuery(sessionsQuery);
  const model = useQuery(modelQuery);
  const navigate = useNavigate();
  const create = useNewSession();
  const went = useRef(false);
  useEffect(() => {
    if (went.current || !rows.data || !model.data) return;
    went.current = true;
    const newest = rows.data.find((row) => !row.archived);
    if (newest) void navigate({ to: "/s/$id", params: { id: newest.sessionId }, replace: true });
    else if (!model.data.isChosen && model.data.isChangeable) void navigate({ to: "/welcome", replace: true });
    else void create();
  }, [rows.data, model.data, navigate, create]);
  return <Skeleton lines={3} />;
}

const root = createRootRoute({
  component: () => (
    <Suspense fallback={<Skeleton lines={3} />}>
      <Outlet />
    </Suspense>
  ),
  notFoundComponent: () => (
    <main>
      <h1 className="sr-only">Planwright</h1>
      <Empty title={t("There is nothing at this address.")}><a className="button" href="/">{t("Home")}</a></Empty>
    </main>
  ),
});
const shell = createRoute({ getParentRoute: () => root, id: "shell", component: Shell });
const home = createRoute({ getParentRoute: () => shell, path: "/", component: Home });
const session = createRoute({ getParentRoute: () => shell, path: "/s/$id", component: perSession(SessionScreen) });
const review = createRoute({ getParentRoute: () => shell, path: "/s/$id/plan", component: perSession(ReviewScreen), validateSearch: (search: Record<string, unknown>): { rev?: number } => ({ rev: Number.isSafeInteger(search.rev) ? Number(search.rev) : undefined }) });
const work = createRoute({
  getParentRoute: () => shell,
  path: "/s/$id/work",
  component: perSession(WorkScreen),
  validateSearch: (search: Record<string, unknown>): { plan?: string; run?: string } => ({
    plan: typeof search.plan === "string" ? search.plan : undefined,
    run: typeof search.run === "string" ? search.run : undefined,
  }),
});
const notebook = createRoute({ getParentRoute: () => shell, path: "/s/$id/notebook", component: perSession(NotebookScreen) });
const memory = createRoute({ getParentRoute: () => shell, path: "/s/$id/memory", component: perSession(MemoryScreen) });
const approvals = createRoute({ getParentRoute: () => shell, path: "/approvals", component: () => <Approvals /> });
const sessions = createRoute({ getParentRoute: () => shell, path: "/sessions", component: SessionsScreen });
const settings = createRoute({ getParentRoute: () => shell, path: "/settings", component: SettingsScreen });
const login = createRoute({ getParentRoute: () => root, path: "/login", component: LoginScreen });
const welcome = createRoute({ getParentRoute: () => root, path: "/welcome", component: WelcomeScreen });

const router = createRouter({
  routeTree: root.addChildren([shell.addChildren([home, session, review, work, notebook, memory, approvals, sessions, settings]), login, welcome]),
  defaultPreload: false,
  // Around every screen: what fails is the screen, and the navigation stays.
  defaultErrorComponent: ErrorScreen,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

const element = document.getElementById("root");
if (element) {
  createRoot(element).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
