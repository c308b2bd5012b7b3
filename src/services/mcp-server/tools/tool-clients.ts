import { configuredGates, functionGates, Receipts, resolveRun } from "../../../agent/index.js";
import type { AgentFlags, CliContext } from "../../../command/index.js";
import { agentSettings, openSandbox, receiptText, sessionHost } from "../../../command/index.js";
import type { ToolGates } from "../../../tools/index.js";
import { mergeGates, nobodyToAsk } from "../../../tools/index.js";
import { readVersion } from "../../../version.js";
import type { OpenClient } from "../served-client.js";

/** The sandboxed tools for MCP clients. Errors: those of `resolveRun`, before a client is served. */
export async function toolClients(flags: AgentFlags, context: CliContext): Promise<OpenClient> {
  const { config, sandbox, setting } = await resolveRun(
    await agentSettings(flags, context),
    sessionHost(context),
    {
      usualApproval: "never",
      beginsSession: true,
    },
  );
  const { policy } = sandbox.policy;
  const { environment, stderr } = context;
  const { serveTools } = await import("./serve-tools.js");
  return serveTools({
    openSandbox: async (signal) => await openSandbox(() => sandbox, { environment, stderr, signal }),
    onReceipt(receipt) {
      const text = textOf(receipt);
      stderr.write(text);
      return text;
    },
    cwd: setting.cwd,
    gates: servedGates(configuredGates(config)),
    allowsLoginShell: config.allow_login_shell,
    hasNetwork: setting.network.kind !== "none",
    canWrite: policy.workspace.access === "rw",
    version: readVersion(),
  });
}

function textOf(receipt: unknown): string {
  const receipts = new Receipts();
  receipts.add(receipt);
  return receipts.all === null ? "" : receiptText(receipts.all);
}

/**
 * MCP clients can call functions only, and have a plan and a web search of their own. Nobody can be asked.
 */
function servedGates(configured: ToolGates): ToolGates {
  const gates = mergeGates([
    { source: "served tools", gates: { update_plan: false } },
    { source: "configuration", gates: configured },
    { source: "served tools", gates: { web_search: "disabled" } },
    nobodyToAsk,
  ]);
  return { ...gates, ...functionGates(gates).gates };
}
