import { totalmem } from "node:os";
import { type Command, InvalidArgumentError, Option } from "commander";
import {
  addConfigOptions,
  addLimitOptions,
  addVariableOptions,
  type ConfigFlags,
  collect,
  durationArgument,
  type LimitFlags,
  sizeArgument,
  type VariableFlags,
} from "../../command/index.js";
import { formatBytes } from "../../lib/bytes.js";
import { type ListenAddress, parseListenAddress } from "../../lib/http/listen.js";
import type { SandboxMode } from "../../sandbox/index.js";
import { isSandboxMode, SANDBOX_MODES } from "../../sandbox/index.js";

export interface ServeFlags extends ConfigFlags, LimitFlags, VariableFlags {
  listen: ListenAddress;
  tlsCert?: string;
  tlsKey?: string;
  tlsClientCa?: string;
  tlsSelfSigned?: boolean;
  insecureHttp?: boolean;
  allowHost?: string[];
  tokenFile?: string[];
  tokens?: string;
  auditLog?: string;
  sandbox: SandboxMode;
  containerImage?: string;
  runtime?: string;
  allowNetwork?: boolean;
  pull?: boolean;
  agent?: string;
  model?: string;
  keepSandboxes?: boolean;
  keepSecrets?: boolean;
  warm: number;
  maxSandboxes: number;
  maxPerClient?: number;
  maxWaiting: number;
  idle: number;
  maxLife: number;
  maxBuffered: number;
  e2bAutoPause: "pause" | "end";
  openapi?: boolean;
  json?: boolean;
}

const LONGEST_LIFE_MS = 7 * 24 * 3_600_000;
const DEFAULT_PORT = 8017;
const DEFAULT_ADDRESS: ListenAddress = { kind: "port", host: "127.0.0.1", port: DEFAULT_PORT };
const MAX_SANDBOXES = 1000;

export function addServeOptions(command: Command): Command {
  const option = (flags: string, text: string, parse: (text: string) => unknown) =>
    new Option(flags, text).argParser(parse);
  const upTo = (max: number, min = 1) => wholeNumber({ min, max });
  const duration = durationArgument({ atMostMs: LONGEST_LIFE_MS });
  return addVariableOptions(addLimitOptions(addConfigOptions(command)))
    .addOption(
      option(
        "--listen <address>",
        "HOST:PORT, [IPV6]:PORT or unix:PATH; port 0 is any that is free. Other machines need TLS",
        listenArgument,
      ).default(DEFAULT_ADDRESS, `127.0.0.1:${DEFAULT_PORT}`),
    )
    .option("--tls-cert <file>", "speak TLS with this certificate and the chain below it, in PEM")
    .option("--tls-key <file>", "the key of the certificate. Files that change are read again")
    .option("--tls-self-signed", "speak TLS with a certificate of an authority that is kept in BRIG_HOME")
    .option("--tls-client-ca <file>", "let only clients connect that have a certificate of this authority")
    .option("--insecure-http", "answer other machines without TLS: only behind a proxy that has it")
    .option("--allow-host <name>", "a further name by which clients may ask for the service", collect)
    .option(
      "--token-file <file>",
      "the file with the token of a client; repeated for further clients, each of which sees only its own sandboxes (default: one new token, printed)",
      collect,
    )
    .option(
      "--tokens <file>",
      "clients with their tokens, rights and quotas, in TOML or JSON; read again when it changes",
    )
    .option(
      "--audit-log <file>",
      "append a line of JSON for each request: who, from where, what, and how it ended",
    )
    .option(
      "-s, --sandbox <mode>",
      `the mode of a sandbox whose client names none: ${SANDBOX_MODES.join(", ")}`,
      mode,
      "workspace-write",
    )
    .option(
      "--container-image <image>",
      "the image of a sandbox whose client names none (default: brig/base)",
    )
    .option("--runtime <name>", "the OCI runtime of the containers (default: the engine's)")
    .option("--allow-network", "let clients ask for sandboxes with a network")
    .option(
      "--keep-sandboxes",
      "leave the sandboxes running when the service ends or is killed: the next one with the same --listen goes on with them, if it comes within 10 minutes",
    )
    .option(
      "--keep-secrets",
      "with --keep-sandboxes: leave those with secrets, and those of E2B's clients, running as well, with their secrets in files that only you can read",
    )
    .option("--pull", "fetch images that clients name and the engine does not have")
    .option(
      "--agent <agent>",
      "the agent of episodes whose clients name none: model, oracle, nop, scripted:FILE or command:COMMAND",
    )
    .option("-m, --model <name>", "with --agent model: the model")
    .option(
      "--warm <number>",
      "how many sandboxes to keep started for clients that ask for the usual one",
      upTo(100, 0),
      2,
    )
    .option("--max-sandboxes <number>", "sandboxes and episodes at the same time", upTo(MAX_SANDBOXES), 16)
    .option("--max-per-client <number>", "of these, for each client (default: all)", upTo(MAX_SANDBOXES))
    .option("--max-waiting <number>", "how many requests may wait for a place", upTo(10_000, 0), 64)
    .addOption(
      option(
        "--idle <time>",
        "remove a sandbox that was not used for so long: 90, 30s, 2m",
        duration,
      ).default(600_000, "10m"),
    )
    .addOption(
      option("--max-life <time>", "remove a sandbox after so long in any case", duration).default(
        4 * 3_600_000,
        "4h",
      ),
    )
    .addOption(
      option(
        "--max-buffered <size>",
        "the memory that requests, outputs and answers may take together",
        bufferedArgument,
      ).default(usualBufferedBytes(), "a quarter of the machine's memory"),
    )
    .addOption(
      new Option(
        "--e2b-auto-pause <what>",
        "what comes of a client of E2B that wants its sandbox to be paused when its time is over: pause it, or end it",
      )
        .choices(["pause", "end"])
        .default("pause"),
    )
    .option("--openapi", "print the OpenAPI description of the service, and do nothing else")
    .option("--json", "print the address and the token as JSON");
}

function listenArgument(text: string): ListenAddress {
  const address = parseListenAddress(text);
  if (address !== null) return address;
  throw new InvalidArgumentError("It must be HOST:PORT, [IPV6]:PORT or unix:/PATH.");
}

/** The largest single request takes this much. */
const LEAST_BUFFERED_BYTES = 256 * 1024 * 1024;

function bufferedArgument(text: string): number {
  const bytes = sizeArgument(text);
  if (bytes >= LEAST_BUFFERED_BYTES) return bytes;
  throw new InvalidArgumentError(`It must be at least ${formatBytes(LEAST_BUFFERED_BYTES)}.`);
}

function usualBufferedBytes(): number {
  return Math.max(LEAST_BUFFERED_BYTES, Math.floor(totalmem() / 4));
}

function mode(text: string): SandboxMode {
  if (isSandboxMode(text)) return text;
  throw new InvalidArgumentError(`It must be one of ${SANDBOX_MODES.join(", ")}.`);
}

function wholeNumber({ min, max }: { min: number; max: number }): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (/^[0-9]+$/.test(text) && number >= min && number <= max) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}
