import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { brig, containersOf, program } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";
import { testProgram } from "../support/test-program.js";

/** It brings version 1 of the SDK. */
const everything = await testProgram("server-everything");
const v1Sdk = join(
  everything.folder,
  "node_modules",
  "@modelcontextprotocol",
  "sdk",
  "dist",
  "esm",
  "client",
);

let work: string;
let home: string;

beforeEach(async () => {
  const [one, other] = await Promise.all([temporaryDirectory(), temporaryDirectory()]);
  onTestFinished(async () => {
    await one[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  });
  work = one.path;
  home = other.path;
});

/** The methods that the clients of both SDKs have. */
interface AnyClient {
  connect(transport: unknown): Promise<void>;
  callTool(call: { name: string; arguments: object }): Promise<{ content?: unknown; isError?: unknown }>;
  close(): Promise<void>;
}

interface ClientKind {
  client: () => AnyClient;
  stdio: (parameters: object) => { pid: number | null };
  http: (url: URL, options: object) => { terminateSession(): Promise<void> };
}

const kinds: Record<string, () => Promise<ClientKind>> = {
  "SDK 2 as a client of 2025": async () => second({}),
  "SDK 2 as a client of 2026-07-28": async () =>
    second({ versionNegotiation: { mode: { pin: "2026-07-28" } } }),
  "SDK 1": async () => {
    const load = async (file: string) => await import(pathToFileURL(join(v1Sdk, file)).href);
    const [{ Client: First }, { StdioClientTransport: Stdio }, { StreamableHTTPClientTransport: Http }] =
      await Promise.all([load("index.js"), load("stdio.js"), load("streamableHttp.js")]);
    return {
      client: () => new First({ name: "test", version: "1" }),
      stdio: (parameters) => new Stdio(parameters),
      http: (url, options) => new Http(url, options),
    };
  },
};

function second(options: object): ClientKind {
  return {
    client: () => new Client({ name: "test", version: "1" }, options) as AnyClient,
    stdio: (parameters) =>
      new StdioClientTransport(parameters as ConstructorParameters<typeof StdioClientTransport>[0]),
    http: (url, given) => new StreamableHTTPClientTransport(url, given),
  };
}

const textOf = ({ content }: { content?: unknown }) => (content as { text: string }[]).at(-1)?.text ?? "";

/** Runs a script in the sandbox of a client. */
async function run(client: AnyClient, cmd: string, args: object = {}): Promise<string> {
  return textOf(await client.callTool({ name: "exec_command", arguments: { cmd, ...args } }));
}

async function connectStdio(kind: ClientKind): Promise<{ client: AnyClient; pid: number }> {
  const transport = kind.stdio({
    command: process.execPath,
    args: [program, "mcp-server", "--tools"],
    cwd: work,
    env: { PATH: `${process.env.PATH}`, HOME: home, BRIG_HOME: home },
    stderr: "ignore",
  });
  const client = kind.client();
  await client.connect(transport);
  return { client, pid: transport.pid ?? 0 };
}

/** A server over HTTP, and how to connect a client to it. */
async function serveHttp() {
  const args = ["mcp-server", "--tools", "--listen", "http://127.0.0.1:0"];
  const server = brig(args, { cwd: work, env: { BRIG_HOME: home } });
  let printed = "";
  server.stdout?.on("data", (data) => {
    printed += data;
  });
  await expect.poll(() => printed, { timeout: 30_000 }).toMatch(/^url = "(.+)"\ntoken = "(.+)"\n$/);
  const [, url = "", token = ""] = /^url = "(.+)"\ntoken = "(.+)"\n$/.exec(printed) ?? [];
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  return {
    server,
    url,
    pid: server.pid,
    async connect(kind: ClientKind) {
      const client = kind.client();
      const transport = kind.http(new URL(url), { requestInit });
      await client.connect(transport);
      return { client, transport };
    },
  };
}

describe.for(Object.keys(kinds))("brig mcp-server --tools for the official %s", (name) => {
  const missing = name === "SDK 1" ? everything.missing : null;

  const overStdio = withReason("runs commands in a sandbox of the client's own, which ends with it", missing);
  it.skipIf(missing !== null)(overStdio, async () => {
    const kind = await kinds[name]!();
    const [one, other] = await Promise.all([connectStdio(kind), connectStdio(kind)]);
    expect(await run(one.client, "echo mine > /tmp/mine; echo shared > shared; pwd")).toContain(work);
    expect(await run(other.client, "ls /tmp/mine; cat shared")).toMatch(/No such file[\s\S]*shared/);
    expect(await readFile(join(work, "shared"), "utf8")).toBe("shared\n");
    const outside = await one.client.callTool({
      name: "apply_patch",
      arguments: { input: "*** Begin Patch\n*** Add File: ../outside\n+x\n*** End Patch" },
    });
    expect(existsSync(join(work, "..", "outside")), textOf(outside)).toBe(false);
    expect(await containersOf(one.pid)).toHaveLength(1);
    await Promise.all([one.client.close(), other.client.close()]);
    await expect.poll(() => containersOf(one.pid), { timeout: 20_000 }).toEqual([]);
    await expect.poll(() => containersOf(other.pid), { timeout: 20_000 }).toEqual([]);
  });

  const overHttp = withReason("serves several clients over HTTP until it is interrupted", missing);
  it.skipIf(missing !== null)(overHttp, async () => {
    const kind = await kinds[name]!();
    const http = await serveHttp();
    const one = await http.connect(kind);
    const other = await http.connect(kind);
    const sandboxOf = async ({ client }: { client: AnyClient }) => {
      if (!name.includes("2026")) return {};
      const refused = await client.callTool({ name: "exec_command", arguments: { cmd: "true" } });
      expect(textOf(refused)).toMatch(/^the argument `sandbox` is missing/);
      const opened = textOf(await client.callTool({ name: "open_sandbox", arguments: {} }));
      return { sandbox: opened.replace("sandbox: ", "") };
    };
    const [first, second] = [await sandboxOf(one), await sandboxOf(other)];
    expect(await run(one.client, "echo mine > /tmp/mine; pwd", first)).toContain(work);
    expect(await run(other.client, "ls /tmp/mine", second)).toContain("No such file");
    expect(await containersOf(http.pid)).toHaveLength(2);
    if (name.includes("2026")) await one.client.callTool({ name: "close_sandbox", arguments: first });
    else await one.transport.terminateSession();
    expect(await containersOf(http.pid)).toHaveLength(1);
    http.server.kill("SIGTERM");
    expect((await http.server).exitCode).toBe(143);
    expect(await containersOf(http.pid)).toEqual([]);
    await Promise.all([one.client.close(), other.client.close()]);
  });
});

describe("brig mcp-server --tools", () => {
  it("that is killed in mid-call by its client leaves no container", async () => {
    const { client, pid } = await connectStdio(second({}));
    const running = run(client, "touch started; sleep 600", { yield_time_ms: 30_000 }).catch(() => "gone");
    await expect.poll(() => existsSync(join(work, "started")), { timeout: 20_000 }).toBe(true);
    await client.close();
    expect(await running).toBe("gone");
    await expect.poll(() => containersOf(pid), { timeout: 20_000 }).toEqual([]);
  });

  it.each<[string[], RegExp]>([
    [["--listen", "http://0.0.0.0:80"], /It must be stdio or http:\/\/127\.0\.0\.1:PORT/],
    [["--token-file", "none"], /--token-file is for --listen http/],
    [["--listen", "http://127.0.0.1:0", "--token-file", "none"], /the token file ".*none" does not exist/],
    [["-s", "none"], /"none" is not a sandbox mode/],
  ])("with %j says what is wrong", async (args, message) => {
    const { exitCode, stderr, stdout } = await brigHere(["mcp-server", "--tools", ...args], {
      cwd: work,
      env: { BRIG_HOME: home },
    });
    expect(exitCode).not.toBe(0);
    expect(stderr).toMatch(message);
    expect(stdout).toBe("");
  });
});
