// Three nodes with a database, an engine and a bus of their own; a browser at one node, another surface at another.
import { join, resolve } from "node:path";
import { House, start, stop } from "./house.mjs";

/** A cluster that speaks like a house. */
export async function startCluster() {
  const root = resolve(import.meta.dirname, "../..");
  const program = join(root, "target", process.env.PROFILE ?? "debug", "cluster-house");
  const { child, found } = await start(program, [], /^(\{.*"decider".*\})$/m);
  const told = JSON.parse(found[1]);
  const cluster = new House();
  // The browser is at the first node, decisions over HTTP at the second: everything crosses the bus.
  cluster.base = `http://localhost:${told.ports[0]}`;
  cluster.deciding = told.decider;
  const others = told.ports.slice(1).map((port) => `http://127.0.0.1:${port}`);
  let at = 0;
  cluster.ask = (...words) => House.prototype.ask.apply({ base: others[at++ % others.length], decider: async () => told.decider }, words);
  cluster.up = undefined;
  cluster.passphrase = told.passphrase;
  cluster.model = { url: told.model, requests: async () => (await fetch(told.model.replace("/v1", "/requests"))).json() };
  cluster.close = async () => {
    // It stops what it started, by pid, once nobody listens any more.
    const ended = new Promise((done) => child.once("exit", done));
    child.stdin.end();
    const late = setTimeout(() => void stop(child, "SIGKILL"), 30_000);
    await ended;
    clearTimeout(late);
  };
  return cluster;
}
