// A durable line for each message, then the same text to everyone who listens.
import { createServer } from "node:http";
import { openSync, writeSync, fdatasyncSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebSocketServer } from "ws";

const home = mkdtempSync(join(tmpdir(), "planwright-peer-"));
const file = openSync(join(home, "events"), "a");
let seq = 0;

const server = createServer((request, response) => {
  let body = "";
  request.on("data", (piece) => (body += piece));
  request.on("end", () => {
    const { text } = JSON.parse(body);
    writeSync(file, `${text}\n`);
    fdatasyncSync(file);
    seq += 1;
    const frame = JSON.stringify({ seq, data: text });
    for (const socket of sockets.clients) socket.send(frame);
    response.writeHead(202, { "content-type": "application/json" });
    response.end(JSON.stringify({ version: seq }));
  });
});
const sockets = new WebSocketServer({ server, path: "/ws", perMessageDeflate: false });
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
const leave = () => {
  rmSync(home, { recursive: true, force: true });
  process.exit(0);
};
process.on("SIGTERM", leave);
// The figure ends when it closes our standard input.
process.stdin.on("end", leave).resume();
