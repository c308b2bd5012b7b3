import { CLIENT_CAPABILITIES_META_KEY, Server, type ServerContext } from "@modelcontextprotocol/server";
import { z } from "zod";
import { LONGEST_TIMER_MS } from "../../../lib/time/pause.js";
import { readVersion } from "../../../version.js";
import type { ServedClient } from "../served-client.js";
import { CodexCalls } from "./codex-calls.js";
import type { ThreadList } from "./thread-list.js";
import { toolDeclarations } from "./tool-declarations.js";
import type { ClientCall } from "./turn-run.js";

/** How long a person may take to answer a question that the client shows. */
const QUESTION_MS = 60 * 60_000;

/** Accepts every answer, since clients made for Codex do not answer as the MCP specification says. */
const anyReply = z.looseObject({});

const elicitationCapability = z.looseObject({
  elicitation: z.looseObject({ form: z.unknown().optional(), url: z.unknown().optional() }),
});

/** Serves one client with `codex` and `codex-reply`. */
export function openCodexClient(threads: ThreadList): ServedClient {
  const calls = new CodexCalls(threads);
  return {
    createServer: () => createServer(calls),
    close: async () => await calls.close(),
  };
}

function createServer(calls: CodexCalls): Server {
  const server = new Server(
    { name: "brig-mcp-server", title: "Codex", version: readVersion() },
    { capabilities: { tools: { listChanged: true } } },
  );
  server.setRequestHandler("tools/list", () => ({ tools: [...toolDeclarations] }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const state = context.mcpReq.requestState();
    const answer = typeof state === "string" ? { state, replies: context.mcpReq.inputResponses } : null;
    return await calls.call(params, clientCall(server, context), answer);
  });
  return server;
}

function clientCall(server: Server, { mcpReq }: ServerContext): ClientCall {
  const { id, signal, envelope } = mcpReq;
  const capabilities =
    envelope === undefined
      ? server.getClientCapabilities()
      : (envelope as Record<string, unknown>)[CLIENT_CAPABILITIES_META_KEY];
  return {
    id,
    signal,
    progressToken: mcpReq._meta?.progressToken,
    notify: async (method, params) => await mcpReq.notify({ method, params }),
    asking: !canElicit(capabilities)
      ? { kind: "nobody" }
      : envelope === undefined
        ? { kind: "request", ask: (question, options) => elicit(mcpReq, question, options) }
        : { kind: "result" },
  };
}

/** An empty capability stands for forms: the first revision that had it knew nothing else. */
function canElicit(capabilities: unknown): boolean {
  const parsed = elicitationCapability.safeParse(capabilities);
  if (!parsed.success) return false;
  const { form, url } = parsed.data.elicitation;
  return form !== undefined || url === undefined;
}

async function elicit(
  mcpReq: ServerContext["mcpReq"],
  question: object,
  { signal }: { signal: AbortSignal | undefined },
): Promise<unknown> {
  const params = { ...question };
  const timeout = Math.min(QUESTION_MS, LONGEST_TIMER_MS);
  return await mcpReq.send({ method: "elicitation/create", params }, anyReply, { signal, timeout });
}
