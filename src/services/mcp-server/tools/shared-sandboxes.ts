import { randomUUID } from "node:crypto";
import type { CallToolResult, Tool as ListedTool } from "@modelcontextprotocol/server";
import type { ToolOutput } from "../../../tools/index.js";
import { failure } from "../../../tools/index.js";
import { callResult, failedResult } from "./call-result.js";
import { type CallOptions, SandboxCalls } from "./sandbox-calls.js";
import type { SandboxCount } from "./sandbox-count.js";
import type { ToolService } from "./served-sandbox.js";

export const OPEN_SANDBOX = "open_sandbox";
export const CLOSE_SANDBOX = "close_sandbox";

const DEFAULT_IDLE_MS = 30 * 60_000;

const sandboxSchema = {
  type: "object" as const,
  properties: { sandbox: { type: "string", description: "The sandbox, as open_sandbox returned it." } },
  required: ["sandbox"],
};

/** With these tools, clients without a session open and close the sandboxes that they work in. */
export const sandboxTools: readonly ListedTool[] = [
  {
    name: OPEN_SANDBOX,
    title: "Open a sandbox",
    description:
      "Opens a sandbox and returns its name, which every other tool takes as `sandbox`. Call this once, before any other tool.",
    inputSchema: { type: "object", properties: {} },
    outputSchema: sandboxSchema,
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  },
  {
    name: CLOSE_SANDBOX,
    title: "Close a sandbox",
    description: "Ends every process of a sandbox and removes it. The files of the workspace stay.",
    inputSchema: sandboxSchema,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  },
];

interface Named {
  calls: SandboxCalls;
  running: number;
  idle: NodeJS.Timeout | undefined;
}

/**
 * The sandboxes that clients without a session have opened. Each has a name, which the client passes with
 * every call.
 */
export class SharedSandboxes {
  readonly #service: ToolService;
  readonly #count: SandboxCount;
  readonly #named = new Map<string, Named>();
  readonly #closing = new Set<Promise<string>>();
  #isClosed = false;

  constructor(service: ToolService, count: SandboxCount) {
    this.#service = service;
    this.#count = count;
  }

  async open(signal: AbortSignal): Promise<CallToolResult> {
    if (this.#isClosed) return failedResult("the server is closing");
    const name = randomUUID();
    const named: Named = { calls: new SandboxCalls(this.#service, this.#count), running: 1, idle: undefined };
    this.#named.set(name, named);
    const failed = await named.calls.start(signal).catch((error: unknown) => {
      // The call was cancelled, so the client does not receive the name and could never close the sandbox.
      void this.#end(name, named);
      throw error;
    });
    if (failed !== null) {
      await this.#end(name, named);
      return callResult(failed);
    }
    this.#rest(name, named);
    return { content: [{ type: "text", text: `sandbox: ${name}` }], structuredContent: { sandbox: name } };
  }

  async call(
    tool: string,
    { sandbox: name, ...args }: Readonly<Record<string, unknown>>,
    options: CallOptions,
  ): Promise<ToolOutput> {
    const named = typeof name === "string" ? this.#named.get(name) : undefined;
    if (typeof name !== "string" || named === undefined) return unknownSandbox(name);
    named.running += 1;
    clearTimeout(named.idle);
    try {
      return await named.calls.call(tool, args, options);
    } finally {
      this.#rest(name, named);
    }
  }

  async closeOne(name: unknown): Promise<ToolOutput> {
    const named = typeof name === "string" ? this.#named.get(name) : undefined;
    if (typeof name !== "string" || named === undefined) return unknownSandbox(name);
    const left = await this.#end(name, named);
    return { content: `the sandbox is closed\n${left}`.trimEnd(), success: true };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const [name, named] of this.#named) void this.#end(name, named);
    await Promise.all(this.#closing);
  }

  /**
   * Notes the end of a call. If no other call runs, the sandbox is closed after some time without a new one.
   */
  #rest(name: string, named: Named): void {
    named.running -= 1;
    if (named.running > 0 || this.#named.get(name) !== named) return;
    const { idleMs = DEFAULT_IDLE_MS } = this.#service;
    named.idle = setTimeout(() => void this.#end(name, named), idleMs);
  }

  async #end(name: string, named: Named): Promise<string> {
    this.#named.delete(name);
    clearTimeout(named.idle);
    const closing = named.calls.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
    return await closing;
  }
}

function unknownSandbox(name: unknown): ToolOutput {
  return failure(
    name === undefined
      ? `the argument \`sandbox\` is missing: call ${OPEN_SANDBOX} first, and pass what it returns`
      : `there is no such sandbox, or it was unused for too long: call ${OPEN_SANDBOX}, and pass what it returns`,
  );
}
