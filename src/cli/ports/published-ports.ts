import { InvalidArgumentError, Option } from "commander";
import type { Sandbox } from "../../sandbox/sandbox.js";
import type { CliContext } from "../context.js";
import { say } from "../render.js";

/** A port of the sandbox that is reachable on this machine. */
export interface PublishedPort {
  /** The port of this machine's 127.0.0.1; 0 for any that is free. */
  hostPort: number;
  sandboxPort: number;
}

export function publishOption(): Option {
  return new Option(
    "--publish <[host:]port>",
    "make a port of the sandbox reachable at 127.0.0.1, at the same port or at HOST, 0 for any; may be repeated",
  ).argParser((text, earlier: readonly PublishedPort[] = []) => [...earlier, publishedPort(text)]);
}

export function publishedPort(text: string): PublishedPort {
  const match = /^(?:([0-9]{1,5}):)?([0-9]{1,5})$/.exec(text);
  const sandboxPort = Number(match?.[2]);
  const hostPort = Number(match?.[1] ?? sandboxPort);
  if (match !== null && sandboxPort >= 1 && sandboxPort <= 0xffff && hostPort <= 0xffff)
    return { hostPort, sandboxPort };
  throw new InvalidArgumentError("It must be a port from 1 to 65535, or HOST:PORT, for example 8080:3000.");
}

/**
 * Publishes the ports, says where each is, and lists them for `brig port` until it is disposed of. Error:
 * `sandbox.port-in-use`.
 */
export async function publishPorts(
  sandbox: Sandbox,
  { publish = [], argv }: { publish: readonly PublishedPort[] | undefined; argv: readonly string[] },
  { stderr, environment }: Pick<CliContext, "stderr" | "environment">,
): Promise<AsyncDisposable> {
  const forget: (() => Promise<void>)[] = [];
  for (const { hostPort, sandboxPort } of publish) {
    // Loaded on demand: most commands publish nothing.
    const { recordPort } = await import("../../sandbox/network/port-records.js");
    const { port, url } = await sandbox.forward(sandboxPort, { hostPort });
    const place = { sandbox: sandbox.id, sandboxPort, port, url, workingDirectory: sandbox.workingDirectory };
    forget.push(await recordPort(environment.brigHome, { ...place, command: argv.join(" ") }));
    await say(stderr, `brig: port ${sandboxPort} of the sandbox is at ${url}\n`);
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const one of forget) await one();
    },
  };
}
