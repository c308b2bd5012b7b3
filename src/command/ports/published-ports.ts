import { InvalidArgumentError, Option } from "commander";
import type { Sandbox } from "../../sandbox/index.js";
import type { CliContext } from "../context.js";
import { say } from "../render.js";
import { offerPorts } from "./offer-ports.js";
import { type PublishedPort, type SandboxLabel, SandboxPorts } from "./sandbox-ports.js";

export function publishOption(): Option {
  return new Option(
    "--publish <[host:]port>",
    "make a port of the sandbox reachable at 127.0.0.1, at the same port or at HOST, 0 for any; may be repeated",
  ).argParser((text, earlier: readonly PublishedPort[] = []) => [...earlier, publishedPort(text)]);
}

export function publishedPort(text: string): PublishedPort {
  const port = portPair(text);
  if (port !== null) return port;
  throw new InvalidArgumentError("It must be a port from 1 to 65535, or HOST:PORT, for example 8080:3000.");
}

/** Null for a text that is neither `PORT` nor `HOST:PORT`. */
export function portPair(text: string): PublishedPort | null {
  const match = /^(?:([0-9]{1,5}):)?([0-9]{1,5})$/.exec(text);
  const sandboxPort = Number(match?.[2]);
  const hostPort = Number(match?.[1] ?? sandboxPort);
  const isPair = match !== null && sandboxPort >= 1 && sandboxPort <= 0xffff && hostPort <= 0xffff;
  return isPair ? { hostPort, sandboxPort } : null;
}

interface Publishing extends SandboxLabel {
  publish: readonly PublishedPort[] | undefined;
  /** Called when the sandbox is closed. */
  onClose?: () => void;
}

/**
 * Publishes the ports and prints the address of each. `brig port` can list them, open others and close them until the
 * sandbox is closed. Error: `sandbox.port-in-use`.
 */
export async function publishPorts(
  sandbox: Sandbox,
  { publish = [], onClose, ...label }: Publishing,
  { stderr, environment }: Pick<CliContext, "stderr" | "environment">,
): Promise<void> {
  const { disposeFirst } = await import("../../sandbox/index.js");
  const ports = new SandboxPorts(sandbox, label, environment.brigHome);
  disposeFirst(sandbox, ports);
  for (const one of publish) {
    const { url } = await ports.open(one);
    await say(stderr, `brig: port ${one.sandboxPort} of the sandbox is at ${url}\n`);
  }
  disposeFirst(sandbox, offerPorts(ports, environment.brigHome));
  if (onClose !== undefined) disposeFirst(sandbox, { [Symbol.asyncDispose]: async () => onClose() });
}
