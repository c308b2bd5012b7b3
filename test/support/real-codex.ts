import { spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ExecClient } from "./exec-client.js";
import {
  messageDone,
  type ReceivedRequest,
  type Reply,
  respond,
  startResponsesServer,
} from "./responses-server.js";
import { testProgram } from "./test-program.js";

const { path, missing } = await testProgram("codex");

/** The real Codex; null where there is none. */
export const realCodex = missing === null ? path : null;

/** Null where there is one. */
export const whyNoCodex = missing;

/** What a scripted model answers to a request. */
export type CodexTurn = (request: ReceivedRequest) => object[];

interface CodexRun {
  turns: readonly CodexTurn[];
  mode: string;
  workspace: string;
  /** An empty directory for Codex's own files. */
  directory: string;
  /** The text of its environments.toml; null for its own local environment. */
  environments: string | null;
  /** Further lines for its config.toml. */
  configuration?: string;
}

export interface CodexResult {
  exitCode: number | null;
  stdout: string;
  stderr: string;
  requests: ReceivedRequest[];
}

/** Runs one `codex exec` against a model that answers with these turns, and then says that it is done. */
export async function runRealCodex(run: CodexRun): Promise<CodexResult> {
  let count = 0;
  await using server = await startResponsesServer((request): Reply => {
    const turn = run.turns[count++];
    return respond(...(turn === undefined ? [messageDone("Done.")] : turn(request)));
  });
  const home = join(run.directory, "home");
  // Codex makes its helper programs in no home that lies in a temporary directory.
  const temporary = join(run.directory, "tmp");
  await Promise.all([mkdir(home, { recursive: true }), mkdir(temporary, { recursive: true })]);
  await writeFile(join(home, "config.toml"), configuration(server.url) + (run.configuration ?? ""));
  if (run.environments !== null) await writeFile(join(home, "environments.toml"), run.environments);
  const args = ["exec", "--skip-git-repo-check", "-s", run.mode, "-C", run.workspace, "--json", "go"];
  const program = realCodex ?? "";
  const child = spawn(program, args, {
    // Inside its own sandbox commands see this variable, in ours they do not.
    env: {
      ...process.env,
      ...{ NO_COLOR: undefined, CODEX_HOME: home, TMPDIR: temporary, OPENAI_API_KEY: "none" },
      // In its local environment it reads what the user's shell is started with, which may print something.
      ...(run.environments === null ? { HOME: home } : {}),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr, exitCode] = await Promise.all([
    collect(child.stdout),
    collect(child.stderr),
    new Promise<number | null>((resolve, reject) => child.on("close", resolve).on("error", reject)),
  ]);
  return { exitCode, stdout, stderr, requests: server.requests };
}

/** A client of Codex's own exec-server, and the server with it. */
export async function openRealExecServer(
  directory: string,
): Promise<AsyncDisposable & { client: ExecClient }> {
  const child = spawn(realCodex ?? "", ["exec-server", "--listen", "stdio"], {
    env: { ...process.env, CODEX_HOME: directory },
    stdio: ["pipe", "pipe", "ignore"],
  });
  const ended = new Promise((resolve) => child.on("close", resolve));
  const client = new ExecClient((text) => void child.stdin.write(`${text}\n`));
  createInterface(child.stdout).on("line", (line) => client.receive(line));
  await client.initialize();
  return {
    client,
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await ended;
    },
  };
}

function configuration(url: string): string {
  return `model = "gpt-5.6"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "${url}"
wire_api = "responses"
`;
}

async function collect(stream: AsyncIterable<Buffer>): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}
