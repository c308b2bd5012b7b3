import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { BrigError } from "../../errors.js";
import { readTextFile } from "../../lib/bounded-file.js";
import type { CliContext } from "../context.js";
import { describeError } from "../display/error-text.js";
import { fitted, write } from "../render.js";

interface ExecServerFlags {
  listen: Listen;
  wsTokenFile?: string;
  containerImage?: string;
  runtime?: string;
}

type Listen = { kind: "stdio" } | { kind: "ws"; port: number };

const MAX_TOKEN_BYTES = 4096;

export function defineExecServer(command: Command, context: CliContext): void {
  command
    .addOption(
      new Option("--listen <where>", "stdio, or ws://127.0.0.1:PORT")
        .argParser(listenArgument)
        .default({ kind: "stdio" } satisfies Listen, "stdio"),
    )
    .option(
      "--ws-token-file <file>",
      "the file with the token of WebSocket clients (default: a new token, printed)",
    )
    .option("--container-image <image>", "the image to run, which has /bin/bash (default: brig/base)")
    .option("--runtime <name>", "the OCI runtime, for example runsc")
    .addHelpText("after", HELP)
    .action(async (flags: ExecServerFlags) => {
      await serve(flags, context);
    });
}

const HELP = `
Codex starts this program by itself after brig setup codex. Each command and file access of Codex then runs in a
container whose mounts enforce the permissions that Codex sends. A permission that mounts cannot enforce exactly is
refused. The sandboxes end with the client.`;

async function serve(flags: ExecServerFlags, context: CliContext): Promise<void> {
  const { cwd, environment, signal } = context;
  if (flags.listen.kind === "stdio" && flags.wsTokenFile !== undefined)
    throw new BrigError("--ws-token-file is for --listen ws://127.0.0.1:PORT", { code: "usage.invalid" });
  const { connectEngine } = await import("../setup/early-engine.js");
  const engine = connectEngine({ env: environment });
  // Whoever needs the engine first is told what is wrong with it.
  engine.catch(() => undefined);
  const sandbox = {
    engine,
    environment,
    image: flags.containerImage,
    runtime: flags.runtime,
    onWarning: (warning: BrigError) => {
      context.stderr.write(fitted(context.stderr, describeError(warning, { showsCauses: false })));
    },
  };
  if (flags.listen.kind === "stdio") {
    const { serveStdio } = await import("../../exec-server/serve-stdio.js");
    return await serveStdio({
      input: context.stdin,
      output: context.stdout,
      sandbox,
      directory: cwd,
      signal,
    });
  }
  const token = flags.wsTokenFile === undefined ? null : await readToken(resolve(cwd, flags.wsTokenFile));
  const newToken = randomBytes(32).toString("hex");
  const { serveWebSocket } = await import("../../exec-server/serve-websocket.js");
  await serveWebSocket({
    port: flags.listen.port,
    token: token ?? newToken,
    sandbox,
    directory: cwd,
    signal,
    onListening: (url) => {
      const line = token === null ? `auth_bearer_token = "${newToken}"\n` : "";
      void write(context.stdout, `url = "${url}"\n${line}`);
    },
  });
}

async function readToken(file: string): Promise<string> {
  const read = await readTextFile(file, MAX_TOKEN_BYTES);
  const token = read.kind === "text" ? read.text.trim() : "";
  if (/^[\x21-\x7e]{16,}$/.test(token)) return token;
  const reason =
    read.kind === "missing"
      ? "does not exist"
      : read.kind === "unreadable"
        ? read.reason
        : "does not hold one word of at least 16 characters";
  throw new BrigError(`the token file ${JSON.stringify(file)} ${reason}`, {
    code: "usage.invalid",
    hint: "write a random token to it, for example with: openssl rand -hex 32",
  });
}

function listenArgument(text: string): Listen {
  if (/^stdio(?::\/\/)?$/.test(text)) return { kind: "stdio" };
  const port = Number(/^ws:\/\/(?:127\.0\.0\.1|localhost):([0-9]{1,5})\/?$/.exec(text)?.[1]);
  if (port <= 65_535) return { kind: "ws", port };
  throw new InvalidArgumentError("It must be stdio or ws://127.0.0.1:PORT: other addresses are not served.");
}
