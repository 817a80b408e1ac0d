/** Who is asked when the server wants the passphrase again: resolves to whether it was given. */
type Asks = (words: string) => Promise<boolean>;

let asks: Asks | undefined;

export function answerAsks(next: Asks | undefined): void {
  asks = next;
}

/** Sends a request, and once more if its person must give the passphrase again first. */
export async function sendAsked(request: Request, send: (request: Request) => Promise<Response>): Promise<Response> {
  const again = request.clone();
  const response = await send(request);
  if (response.status !== 403 || !asks) return response;
  const problem = (await response.clone().json().catch(() => ({}))) as { type?: string; detail?: string };
  if (problem.type !== "urn:planwright:ask_again" || !(await asks(problem.detail ?? ""))) return response;
  return send(again);
}
