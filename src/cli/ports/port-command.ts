import { type Command, InvalidArgumentError } from "commander";
import type { CliContext, PublishedPort } from "../../command/index.js";
import {
  openControlRecords,
  portPair,
  publishedPort,
  say,
  write,
  writeJson,
  writeTable,
} from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import { openPorts } from "../../sandbox/index.js";
import { askOwner } from "./ask-owner.js";
import { findSandbox, type RunningSandbox } from "./find-sandbox.js";

interface PortFlags {
  all?: boolean;
  close?: number;
  json?: boolean;
}

export function definePort(command: Command, context: CliContext): void {
  command
    .argument(
      "[sandbox]",
      "the start of a sandbox's or session's id, or a name of brig wrap; default: the only one",
    )
    .argument("[port]", "the port in the sandbox, or HOST:PORT for another one here, 0 for any")
    .usage("[options] [[SANDBOX] [HOST:]PORT]")
    .option("--all", "list running sandboxes without such ports, too")
    .option("--close <port>", "close this port of 127.0.0.1", closedPort)
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action(async (first: string | undefined, second: string | undefined, flags: PortFlags) => {
      await runPort(
        [first, second].filter((word) => word !== undefined),
        flags,
        context,
      );
    });
}

const help = `
Without arguments it lists the ports of sandboxes that are reachable here. With a port it makes that one reachable, and
returns: the brig that runs the sandbox passes the connections on until it ends, or until brig port --close.`;

function closedPort(text: string): number {
  const port = portPair(text);
  if (port !== null && !text.includes(":")) return port.sandboxPort;
  throw new InvalidArgumentError("It must be a port from 1 to 65535, as brig port lists it.");
}

async function runPort(words: readonly string[], flags: PortFlags, context: CliContext): Promise<void> {
  if (flags.close !== undefined && words.length > 0)
    throw invalidUsage("--close takes only a port of 127.0.0.1", "brig port lists them");
  if (flags.close !== undefined) return await closePort(flags.close, flags, context);
  if (words.length === 0) return await listPorts(flags, context);
  const [last = ""] = words.slice(-1);
  await openPort(words.length === 2 ? words[0] : undefined, pairOf(last), { flags, context });
}

function pairOf(text: string): PublishedPort {
  try {
    return publishedPort(text);
  } catch (cause) {
    throw new BrigError(`${JSON.stringify(text)} is not a port`, {
      code: "usage.invalid",
      hint: "for example brig port 8080:3000, or brig port SANDBOX 3000",
      cause,
    });
  }
}

async function openPort(
  wanted: string | undefined,
  { sandboxPort, hostPort }: PublishedPort,
  { flags: { json }, context }: { flags: PortFlags; context: CliContext },
): Promise<void> {
  const { stdout, signal } = context;
  const owner = findSandbox(await runningSandboxes(context), wanted);
  const reply = await askOwner(owner, { kind: "open", sandboxPort, hostPort }, signal);
  if (reply.kind !== "opened") throw unexpected();
  const { port, url } = reply;
  if (json !== true) return await write(stdout, `${url}\n`);
  const { sandbox, session, pid, command, workingDirectory } = owner;
  await writeJson(stdout, { sandbox, session, sandboxPort, port, url, command, workingDirectory, pid });
}

async function closePort(hostPort: number, { json }: PortFlags, context: CliContext): Promise<void> {
  const { stdout, stderr, environment, signal } = context;
  const listed = (await openPorts(environment.brigHome)).find(({ port }) => port === hostPort);
  const owner = (await runningSandboxes(context)).find(({ sandbox }) => sandbox === listed?.sandbox);
  const unknown = () =>
    new BrigError(`port ${hostPort} of this machine leads to no sandbox`, {
      code: "session.unknown",
      hint: "brig port lists the ports that do",
    });
  if (owner === undefined) throw unknown();
  const reply = await askOwner(owner, { kind: "close", hostPort }, signal);
  if (reply.kind === "opened") throw unexpected();
  if (reply.kind === "unknown") throw unknown();
  if (json === true) await writeJson(stdout, { closed: hostPort });
  else await say(stderr, `closed ${listed?.url}\n`);
}

function unexpected(): BrigError {
  return new BrigError("the brig that runs the sandbox gave an answer that this brig does not understand", {
    code: "sandbox.port-failed",
    hint: "it may be of another version; end it, and start the sandbox again",
  });
}

async function runningSandboxes({ environment }: CliContext): Promise<RunningSandbox[]> {
  const { records } = await openControlRecords(environment.brigHome);
  return (await records.list()).sort((a, b) => (a.sandbox < b.sandbox ? -1 : 1));
}

const header = ["AT", "PORT", "SANDBOX", "SESSION", "DIRECTORY", "COMMAND"];

async function listPorts({ all = false, json }: PortFlags, context: CliContext): Promise<void> {
  const { stdout, stderr, environment } = context;
  const ports = await openPorts(environment.brigHome);
  // Open ports are listed even if the records of running sandboxes cannot be read.
  const running = await runningSandboxes(context).catch(() => []);
  const others = running.filter(({ sandbox }) => !ports.some((port) => port.sandbox === sandbox));
  if (json === true) {
    const without = all ? others.map(({ address: _, token: __, ...rest }) => ({ ...rest, ...noPort })) : [];
    return await writeJson(stdout, [...ports, ...without]);
  }
  const rows = [...ports, ...(all ? others.map((one) => ({ ...one, ...noPort })) : [])].map(
    ({ url, sandboxPort, sandbox, session, workingDirectory, command }) => [
      ...[url ?? "", sandboxPort === null ? "" : String(sandboxPort), sandbox.slice(0, 8), session ?? ""],
      ...[workingDirectory, command],
    ],
  );
  if (rows.length > 0) await writeTable(stdout, [header, ...rows]);
  else await say(stderr, "no port of a sandbox is reachable here\n");
  if (!all && others.length > 0)
    await say(stderr, `${othersText(others.length)}: brig port --all lists them\n`);
}

const noPort = { sandboxPort: null, port: null, url: null };

function othersText(count: number): string {
  return count === 1 ? "1 running sandbox has no such port" : `${count} running sandboxes have no such port`;
}
