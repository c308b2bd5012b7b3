import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { BrigClient } from "../../src/services/serve/client/brig-client.js";
import { type BrigOptions, brig } from "./cli.js";
import { freePort } from "./free-port.js";
import { temporaryDirectory } from "./sandbox.js";

/** One address and one `$BRIG_HOME`, at which one service after another runs. What they have left ends with the test. */
export interface KeptPlace {
  home: string;
  directory: string;
  url: string;
  client: BrigClient;
  other: BrigClient;
  /** A request of the first client. */
  send(method: string, path: string, body?: object | Buffer): Promise<{ status: number; answer: unknown }>;
  /** Starts a service as a program of its own, and waits until it answers. */
  start(args?: readonly string[], options?: BrigOptions): Promise<RunningService>;
  /** The same for one that is refused. */
  run(args: readonly string[]): ReturnType<typeof brig>;
}

export interface RunningService {
  pid: number;
  /** Ends it, and resolves when it is gone. */
  end(signal: NodeJS.Signals): Promise<{ exitCode: number | undefined; stderr: string }>;
}

export async function keptPlace(): Promise<KeptPlace> {
  const directory = await temporaryDirectory();
  const home = join(directory.path, "home");
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const tokens = ["1", "2"].map((digit) => digit.repeat(64));
  const [client, other] = tokens.map((token) => new BrigClient({ url, token })) as [BrigClient, BrigClient];
  const files: string[] = [];
  for (const token of tokens) {
    const file = join(directory.path, `token-${files.length}`);
    await writeFile(file, `${token}\n`, { mode: 0o600 });
    files.push(file);
  }
  const run = (args: readonly string[], options: BrigOptions = {}) =>
    brig(
      [
        ...["serve", "--listen", `127.0.0.1:${port}`, ...files.flatMap((file) => ["--token-file", file])],
        ...args,
      ],
      { cwd: directory.path, ...options, env: { ...options.env, BRIG_HOME: home } },
    );
  let running: RunningService | undefined;
  const start: KeptPlace["start"] = async (args = ["--keep-sandboxes", "--warm", "0"], options = {}) => {
    const program = run(args, options);
    let said = "";
    program.stdout.on("data", (chunk) => {
      said += chunk;
    });
    let hasEnded = false;
    void program.then(() => {
      hasEnded = true;
    });
    await expect.poll(() => said !== "" || hasEnded, { timeout: 60_000, interval: 20 }).toBe(true);
    if (said === "") throw new Error((await program).stderr);
    const service: RunningService = {
      pid: program.pid as number,
      async end(signal) {
        program.kill(signal);
        const { exitCode, stderr } = await program;
        return { exitCode, stderr };
      },
    };
    running = service;
    return service;
  };
  onTestFinished(async () => {
    await running?.end("SIGKILL");
    // One that does not keep what it finds.
    const last = await start(["--warm", "0"]);
    await last.end("SIGTERM");
    for (const one of [client, other]) one.close();
    await directory[Symbol.asyncDispose]();
  });
  return {
    ...{ home, directory: directory.path, url, client, other, start, run },
    async send(method, path, body) {
      const response = await fetch(`${url}/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${tokens[0]}` },
        body: body === undefined || body instanceof Buffer ? (body ?? null) : JSON.stringify(body),
      });
      const text = await response.text();
      return { status: response.status, answer: text === "" ? null : JSON.parse(text) };
    },
  };
}
