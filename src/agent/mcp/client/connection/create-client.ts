import type { Client } from "@modelcontextprotocol/client";
import type { Questions } from "./elicitation.js";

/** How often a server of 2026-07-28 may answer one call with a question instead of a result. */
const MAX_ROUNDS = 10;

export interface ClientOptions {
  version: string;
  questions: Questions;
  onToolsChanged: () => void;
}

/**
 * Creates a client of the SDK, which is not connected yet. Its first message asks which protocol revisions
 * the server knows. A server that has not answered after `probeMs` gets the handshake of 2025 instead. With
 * null, it gets that at once.
 */
export async function createClient(
  { version, questions, onToolsChanged }: ClientOptions,
  { probeMs }: { probeMs: number | null },
): Promise<Client> {
  const sdk = await import("@modelcontextprotocol/client");
  const client = new sdk.Client(
    { name: "brig", version },
    {
      capabilities: { elicitation: { form: {}, url: {} } },
      versionNegotiation:
        probeMs === null ? { mode: "legacy" } : { mode: "auto", probe: { timeoutMs: probeMs } },
      inputRequired: { maxRounds: MAX_ROUNDS },
      // The SDK would check results against the schemas of the server. A pattern in them could keep brig busy
      // for ever.
      jsonSchemaValidator: {
        getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
      },
    },
  );
  client.setRequestHandler("elicitation/create", async ({ params }, { mcpReq }) => {
    const answer = await questions.answer(params, mcpReq.signal);
    if (answer.action !== "accept") return { action: answer.action };
    const content = Object.entries(answer.content).map(([name, value]) => [name, mutable(value)] as const);
    return { action: "accept", content: Object.fromEntries(content) };
  });
  client.setNotificationHandler("notifications/tools/list_changed", () => onToolsChanged());
  return client;
}

function mutable(value: string | number | boolean | readonly string[]): string | number | boolean | string[] {
  return typeof value === "object" ? [...value] : value;
}
