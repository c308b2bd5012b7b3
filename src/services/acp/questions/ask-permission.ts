import { randomUUID } from "node:crypto";
import type { PermissionOption, RequestPermissionRequest, ToolCallUpdate } from "@agentclientprotocol/sdk";
import { z } from "zod";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "../../../agent/index.js";
import { isTooDeep } from "../../../lib/json/nesting.js";
import { shellQuote } from "../../../lib/shell-quote.js";
import type { ActionToReview } from "../../../tools/index.js";
import { commandForPeople, shellScript } from "../../../tools/index.js";
import type { ClientLink } from "../client-link.js";
import { changeLocations, patchContent, textContent } from "../updates/file-diffs.js";
import { exactText, fenced, titleText } from "../updates/shown-text.js";

/** A longer prefix cannot be taken in at a glance, so it is not offered. */
const MAX_PREFIX_CHARS = 120;
const MAX_ARGUMENT_CHARS = 16_000;

type Choice = PermissionOption & { answer: ApprovalAnswer };

const outcome = z.looseObject({
  outcome: z.discriminatedUnion("outcome", [
    z.looseObject({ outcome: z.literal("selected"), optionId: z.string() }),
    z.looseObject({ outcome: z.literal("cancelled") }),
  ]),
});

/** Asks the person at the client. An answer that is not one of the offered options counts as a denial. */
export function clientApprover(
  link: ClientLink,
  { sessionId, beforeAsking }: { sessionId: () => string; beforeAsking: () => Promise<void> },
): Approver {
  return {
    async ask(request, { signal = new AbortController().signal }) {
      // The question names a tool call, and the client must have received that call before.
      await beforeAsking();
      signal.throwIfAborted();
      const choices = choicesFor(request);
      const asked = { ...permissionRequest(request), sessionId: sessionId(), options: choices.map(optionOf) };
      const answer = await link.askPermission(asked, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        return error;
      });
      const parsed = outcome.safeParse(answer);
      if (!parsed.success) return "denied";
      const chosen = parsed.data.outcome;
      if (chosen.outcome === "cancelled") return "abort";
      return choices.find(({ optionId }) => optionId === chosen.optionId)?.answer ?? "denied";
    },
  };
}

function permissionRequest(request: ApprovalRequest): Pick<RequestPermissionRequest, "toolCall"> {
  const { action, callId, agent } = request;
  // The client does not know the calls of other agents.
  const toolCallId = agent === undefined && callId !== null ? callId : randomUUID();
  const facts = textContent(factsOf(request));
  return { toolCall: { toolCallId, status: "pending", ...callUpdate(action, facts) } };
}

function callUpdate(action: ActionToReview, facts: ReturnType<typeof textContent>): Partial<ToolCallUpdate> {
  switch (action.kind) {
    case "command":
      return {
        kind: "execute",
        title: titleText(commandForPeople(action.argv)),
        rawInput: { command: exactText(commandForPeople(action.argv)), cwd: action.cwd },
        content: [textContent(fenced(exactText(commandText(action.argv)), "sh")), facts],
      };
    case "patch":
      return {
        kind: "edit",
        title: titleText(`Edit ${action.changes.map(({ path }) => path).join(", ")}`),
        locations: changeLocations(action.changes),
        content: [...patchContent(action.patch), facts],
      };
    case "mcp-call": {
      const args = isTooDeep(action.arguments)
        ? "(nested too deeply to be shown)"
        : JSON.stringify(action.arguments, null, 2);
      return {
        kind: "other",
        title: titleText(`${action.server}: ${action.name}`),
        content: [textContent(fenced(exactText(args, MAX_ARGUMENT_CHARS), "json")), facts],
      };
    }
    default:
      return action satisfies never;
  }
}

const requests: Record<ActionToReview["kind"], string> = {
  command: "run this command",
  patch: "apply this patch",
  "mcp-call": "call this tool of an MCP server",
};
const sessionApprovals: Record<ActionToReview["kind"], string> = {
  command: "Allow this command in this directory until the session ends",
  patch: "Allow patches of the same files until the session ends",
  "mcp-call": "Allow every call of this tool until the session ends",
};

/** Facts for the person besides the command, patch or call: where it runs, and why brig asks. */
function factsOf({ action, place, reason, denial, agent }: ApprovalRequest): string {
  const who = agent === undefined ? "The agent" : `The agent ${titleText(agent.nickname)}`;
  const what = requests[action.kind];
  const where =
    place === "escalated"
      ? `${who} asks to ${what} **outside the sandbox**: as root, with a network, and with full access to the workspace.`
      : `${who} asks to ${what}${action.kind === "mcp-call" ? "" : " in the sandbox"}.`;
  const justification = action.kind === "command" ? action.escalation.justification : null;
  const quotes = [
    ["directory", action.kind === "mcp-call" ? null : action.cwd],
    ["reason", reason],
    ["what failed", denial === null ? null : `${denial.errno} ${denial.evidence}`],
    ["the agent says", justification],
    [
      "note",
      action.kind === "command" && action.takesInput
        ? "it stays open: the agent can type into it later without asking"
        : null,
    ],
  ].flatMap(([name, text]) => (text == null ? [] : [`${name}:\n${fenced(exactText(text, 2000))}`]));
  return [where, ...quotes].join("\n\n");
}

/** The whole command. The script of a shell is not quoted, so that a person can read it. */
function commandText(argv: readonly string[]): string {
  const script = shellScript(argv);
  return script === null ? shellQuote(argv) : `${shellQuote(argv.slice(0, 2))}\n${script}`;
}

function choicesFor({ action, prefix }: ApprovalRequest): Choice[] {
  const forSession = sessionApprovals[action.kind];
  const prefixText = prefix === null ? "" : titleText(shellQuote(prefix));
  const choices: Choice[] = [
    { optionId: "allow_once", kind: "allow_once", name: "Allow once", answer: "approved" },
    { optionId: "allow_always", kind: "allow_always", name: forSession, answer: "approved_for_session" },
  ];
  if (prefix !== null && prefixText.length <= MAX_PREFIX_CHARS)
    choices.push({
      optionId: "allow_prefix",
      kind: "allow_always",
      name: `Allow every command that begins with: ${prefixText}`,
      answer: { approvedPrefix: prefix },
    });
  return [
    ...choices,
    { optionId: "reject_once", kind: "reject_once", name: "Reject, and go on without it", answer: "denied" },
    { optionId: "reject_and_stop", kind: "reject_once", name: "Reject, and end the turn", answer: "abort" },
  ];
}

function optionOf({ optionId, kind, name }: Choice): PermissionOption {
  return { optionId, kind, name };
}
