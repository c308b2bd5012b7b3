import { createServer, request } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, it } from "vitest";
import { listenOnLoopback } from "../../src/lib/http/loopback.js";
import { serveMcpHttp } from "../../src/services/mcp-server/serve-http.js";
import { openConformanceClient } from "../support/conformance-server.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";
import { testProgram } from "../support/test-program.js";

const conformance = await testProgram("conformance");
const expectedFailures = fileURLToPath(new URL("../fixtures/mcp-expected-failures.yaml", import.meta.url));
const token = "0123456789abcdef0123456789abcdef";

/** The suite sends no token, so it asks this server, which adds the token and leaves everything else as it is. */
async function addingToken(url: string) {
  const server = createServer((asked, answer) => {
    const headers = { ...asked.headers, authorization: `Bearer ${token}` };
    const options = { method: asked.method ?? "GET", headers, agent: false };
    const passed = request(new URL(asked.url ?? "/", url), options);
    passed.on("response", (given) => {
      answer.writeHead(given.statusCode ?? 500, given.headers);
      given.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    answer.on("close", () => passed.destroy());
    asked.pipe(passed);
  });
  const address = await listenOnLoopback(server, 0);
  return {
    url: `http://${address}/mcp`,
    [Symbol.dispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

it.skipIf(conformance.missing !== null)(
  withReason("the official conformance suite finds nothing that is not expected", conformance.missing),
  { timeout: 180_000 },
  async () => {
    await using directory = await temporaryDirectory();
    const stop = new AbortController();
    let ended: Promise<never> | undefined;
    const url = await new Promise<string>((resolve, reject) => {
      const service = { port: 0, token, openClient: openConformanceClient, signal: stop.signal };
      ended = serveMcpHttp({ ...service, onListening: resolve });
      ended.catch(reject);
    });
    using front = await addingToken(url);
    const args = ["server", "--url", front.url, "--suite", "all", "--expected-failures", expectedFailures];
    const suite = await execa(join(dirname(conformance.path), "node"), [conformance.path, ...args], {
      cwd: directory.path,
      reject: false,
      all: true,
    });
    stop.abort(new Error("stopped"));
    await expect(ended).rejects.toThrow("stopped");
    expect(suite.exitCode, suite.all).toBe(0);
    expect(suite.all).toMatch(/dns-rebinding-protection/);
  },
);
