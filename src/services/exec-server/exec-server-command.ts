import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { CliContext } from "../../command/index.js";
import {
  addLimitOptions,
  addVariableOptions,
  clientInput,
  describeError,
  fitted,
  flaggedLimits,
  type LimitFlags,
  receiptText,
  type VariableFlags,
  write,
} from "../../command/index.js";
import { type BrigError, invalidUsage } from "../../errors.js";
import type { Receipt } from "../../sandbox/index.js";

interface ExecServerFlags extends LimitFlags, VariableFlags {
  listen: Listen;
  wsTokenFile?: string;
  containerImage?: string;
  runtime?: string;
}

type Listen = { kind: "stdio" } | { kind: "ws"; port: number };

export function defineExecServer(command: Command, context: CliContext): void {
  addVariableOptions(addLimitOptions(command))
    .addOption(
      new Option("--listen <where>", "stdio, or ws://127.0.0.1:PORT")
        .argParser(listenArgument)
        .default({ kind: "stdio" } satisfies Listen, "stdio"),
    )
    .option(
      "--ws-token-file <file>",
      "the file with the token of WebSocket clients (default: a new token, printed)",
    )
    .option("--container-image <image>", "the image to run, which has bash or sh (default: brig/base)")
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
    throw invalidUsage("--ws-token-file is for --listen ws://127.0.0.1:PORT");
  const { connectEngine } = await import("../../sandbox/index.js");
  const engine = connectEngine({ env: environment });
  // Without the engine, the first request that needs it fails with this error. Until then it is not reported.
  engine.catch(() => undefined);
  const sandbox = {
    engine,
    environment,
    image: flags.containerImage,
    runtime: flags.runtime,
    limits: flaggedLimits(flags),
    env: flags.env,
    onReceipt: (receipt: Receipt) => void context.stderr.write(receiptText(receipt)),
    onWarning: (warning: BrigError) => {
      context.stderr.write(fitted(context.stderr, describeError(warning, { showsCauses: false })));
    },
  };
  if (flags.listen.kind === "stdio") {
    const { serveStdio } = await import("./serve-stdio.js");
    return await serveStdio({
      input: clientInput(context),
      output: context.stdout,
      sandbox,
      directory: cwd,
      signal,
    });
  }
  const { newToken, readTokenFile } = await import("../../lib/http/bearer-token.js");
  const given = flags.wsTokenFile;
  const token = given === undefined ? newToken() : await readTokenFile(resolve(cwd, given));
  const { serveWebSocket } = await import("./serve-websocket.js");
  await serveWebSocket({
    port: flags.listen.port,
    token,
    sandbox,
    directory: cwd,
    signal,
    onListening: (url) => {
      const line = given === undefined ? `auth_bearer_token = "${token}"\n` : "";
      void write(context.stdout, `url = "${url}"\n${line}`);
    },
  });
}

function listenArgument(text: string): Listen {
  if (/^stdio(?::\/\/)?$/.test(text)) return { kind: "stdio" };
  const port = Number(/^ws:\/\/(?:127\.0\.0\.1|localhost):([0-9]{1,5})\/?$/.exec(text)?.[1]);
  if (port <= 65_535) return { kind: "ws", port };
  throw new InvalidArgumentError("It must be stdio or ws://127.0.0.1:PORT: other addresses are not served.");
}
