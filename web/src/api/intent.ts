/** Idempotency keys: one for each thing that a person wants, kept until the server has said what became of it. */

export const KEY = "Idempotency-Key";

/** No response came: the request may or may not have arrived. */
export class NoAnswer extends Error {}

/** Whether a status says what became of a request. A server or proxy that failed may have passed the request on before. */
export const isDefinite = (status: number) => status < 500;

/** How many wishes without an answer are remembered; the oldest go first. */
const UNANSWERED_MAX = 200;

const unanswered = new Map<string, string>();
const moves = new Map<string, number>();

/** Something was committed in a session: what is asked there from now on is a new wish, even in the same words. */
export function sessionMoved(id: string): void {
  moves.set(id, (moves.get(id) ?? 0) + 1);
}

/** The key of this wish: the same as before, while nobody knows what became of it. */
export function keyOf(intent: string): string {
  const key = unanswered.get(intent) ?? crypto.randomUUID();
  unanswered.set(intent, key);
  for (const oldest of unanswered.keys()) {
    if (unanswered.size <= UNANSWERED_MAX) break;
    unanswered.delete(oldest);
  }
  return key;
}

export function answered(intent: string): void {
  unanswered.delete(intent);
}

/** What a request asks for, and what its page knew of the session then. */
function intentOf(request: Request, body: string): string {
  const path = new URL(request.url).pathname;
  const named = /^\/api\/sessions\/([^/]+)/.exec(path)?.[1];
  const session = named ? decodeURIComponent(named) : (/"sessionId":"([^"]+)"/.exec(body)?.[1] ?? "");
  return [request.method, path, request.headers.get("If-Match") ?? "", body, moves.get(session) ?? 0].join("\n");
}

type Fetch = (request: Request) => Promise<Response>;

/** Sends a request. What changes something has a key: its caller's own, or the one of its intent. Only a request without a whole response is a `NoAnswer`. */
export async function send(request: Request, fetched: Fetch = (request) => fetch(request)): Promise<Response> {
  if (request.method === "GET" || request.headers.has(KEY)) return whole(request, fetched);
  const intent = intentOf(request, await request.clone().text());
  request.headers.set(KEY, keyOf(intent));
  const response = await whole(request, fetched);
  if (isDefinite(response.status)) answered(intent);
  return response;
}

/** The response with all of its body: what breaks off in the middle was not an answer. */
async function whole(request: Request, fetched: Fetch): Promise<Response> {
  let response: Response;
  let body: ArrayBuffer;
  try {
    response = await fetched(request);
    body = await response.arrayBuffer();
  } catch (error) {
    throw new NoAnswer(String(error));
  }
  const { status, statusText, headers } = response;
  return new Response([204, 205, 304].includes(status) ? null : body, { status, statusText, headers });
}
