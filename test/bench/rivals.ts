import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import type { EngineConnection, Sandbox } from "brigbox";

const MAX_RIVAL_MS = 180_000;

/** The Engine API calls that a sandbox's connection can make; its public type does not have them. */
export interface EngineCalls extends EngineConnection {
  createContainer(body: object): Promise<string>;
  startContainer(id: string): Promise<void>;
  removeContainer(id: string): Promise<void>;
  openExec(
    id: string,
    argv: string[],
  ): Promise<{ stream: Readable; inspect(): Promise<{ exitCode: number | null }> }>;
}

export function engineCalls({ engine }: Pick<Sandbox, "engine">): EngineCalls {
  return engine as EngineCalls;
}

/** One command over the Engine API: create the exec, start it, read its stream to the end, ask for its exit code. */
export async function execOverEngineApi(
  { engine, containerId }: Pick<Sandbox, "engine" | "containerId">,
  argv: string[],
): Promise<{ bytes: number }> {
  const exec = await engineCalls({ engine }).openExec(containerId, argv);
  let bytes = 0;
  exec.stream.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
  });
  await once(exec.stream, "end");
  const { exitCode } = await exec.inspect();
  if (exitCode !== 0) throw new Error(`${argv[0]} ended with ${exitCode} over the Engine API`);
  return { bytes };
}

/** The same command on the host, without any sandbox. */
export async function spawnOnHost(program: string, args: string[] = []): Promise<void> {
  await ended(spawn(program, args, { env: plainEnvironment() }));
}

/**
 * For programs that are measured as a whole. Where a machine names certificates in this variable, Node reads them at each start, before anything
 * else, and that can take longer than the rest of its start; no server that is asked here has a certificate.
 */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const { NODE_EXTRA_CA_CERTS: _, ...environment } = process.env;
  return environment;
}

/**
 * Resolves to what the program printed. A program that does not end is ended: `docker run` of many containers at
 * once has been seen to wait for ever for an engine that answers everybody else.
 */
export async function outputOf(program: string, args: string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"], timeout: MAX_RIVAL_MS });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  await ended(child);
  return output;
}

async function ended(child: ChildProcess): Promise<void> {
  const [exitCode, signal] = await once(child, "close");
  if (exitCode !== 0) throw new Error(`${child.spawnargs.join(" ")} ended with ${exitCode ?? signal}`);
}

/** Fails unless the command succeeded: a failed call is fast, and must not count. */
export async function execInSandbox(sandbox: Sandbox, argv: string[]): Promise<void> {
  const { exitCode, output } = await sandbox.exec(argv);
  if (exitCode !== 0) throw new Error(`${argv[0]} ended with ${exitCode} in the sandbox: ${output}`);
}
