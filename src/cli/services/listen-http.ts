import { resolve } from "node:path";
import { InvalidArgumentError, Option } from "commander";
import { BrigError } from "../../errors.js";
import { newToken, readTokenFile } from "../../lib/http/bearer-token.js";
import type { OpenClient } from "../../services/index.js";
import type { CliContext } from "../context.js";
import { write } from "../render.js";
import { clientInput } from "./client-input.js";

/** The place at which an MCP server takes requests. */
type Listen = { kind: "stdio" } | { kind: "http"; port: number };

export interface ListenFlags {
  listen: Listen;
  tokenFile?: string;
}

export function listenOptions(): Option[] {
  return [
    new Option("--listen <where>", "stdio, or http://127.0.0.1:PORT; port 0 is any that is free")
      .argParser(listenArgument)
      .default({ kind: "stdio" } satisfies Listen, "stdio"),
    new Option(
      "--token-file <file>",
      "the file with the token of HTTP clients (default: a new token, printed)",
    ),
  ];
}

/** Serves MCP clients until they are gone, or for HTTP until the signal aborts. */
export async function serveMcp(
  { listen, tokenFile }: ListenFlags,
  openClient: OpenClient,
  context: CliContext,
): Promise<void> {
  const { stdout, cwd, signal } = context;
  if (listen.kind === "stdio") {
    if (tokenFile !== undefined)
      throw new BrigError("--token-file is for --listen http://127.0.0.1:PORT", { code: "usage.invalid" });
    const { serveMcpStdio } = await import("../../services/index.js");
    return await serveMcpStdio({ input: clientInput(context), output: stdout, openClient, signal });
  }
  const token = tokenFile === undefined ? newToken() : await readTokenFile(resolve(cwd, tokenFile));
  const { serveMcpHttp } = await import("../../services/index.js");
  await serveMcpHttp({
    port: listen.port,
    token,
    openClient,
    signal,
    onListening: (url) => {
      const line = tokenFile === undefined ? `token = "${token}"\n` : "";
      void write(stdout, `url = "${url}"\n${line}`);
    },
  });
}

function listenArgument(text: string): Listen {
  if (/^stdio(?::\/\/)?$/.test(text)) return { kind: "stdio" };
  const port = Number(/^http:\/\/(?:127\.0\.0\.1|localhost):([0-9]{1,5})(?:\/mcp)?\/?$/.exec(text)?.[1]);
  if (port <= 65_535) return { kind: "http", port };
  throw new InvalidArgumentError(
    "It must be stdio or http://127.0.0.1:PORT: other addresses are not served.",
  );
}
