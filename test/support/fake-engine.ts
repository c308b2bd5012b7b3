import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Answers one request; null for those it knows nothing about, which then get a 404. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;

export interface FakeEngine extends AsyncDisposable {
  readonly socketPath: string;
  readonly address: string;
  /** Method and path of every request so far, without the version prefix. */
  readonly requests: string[];
}

const modernVersion = {
  Version: "28.0.0",
  ApiVersion: "1.48",
  MinAPIVersion: "1.24",
  Arch: "amd64",
  Os: "linux",
  KernelVersion: "6.1.0",
};

/** A real HTTP server on a Unix socket that greets as an engine does and otherwise answers as it is told. */
export async function fakeEngine(
  answer: Answer = () => undefined,
  { version = {}, socketPath }: { version?: object; socketPath?: string } = {},
): Promise<FakeEngine> {
  const directory = await mkdtemp(join(tmpdir(), "brig-fake-"));
  const path = socketPath ?? join(directory, "docker.sock");
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const url = (request.url ?? "").replace(/^\/v[\d.]+/, "");
    requests.push(`${request.method} ${url}`);
    if (url.startsWith("/version")) return reply(response, 200, { ...modernVersion, ...version });
    request.resume();
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    socketPath: path,
    address: `unix://${path}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export function reply(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
