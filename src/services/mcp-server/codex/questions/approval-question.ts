import { z } from "zod";
import type { ApprovalAnswer, ApprovalRequest } from "../../../../agent/index.js";
import { isTooDeep } from "../../../../lib/json/nesting.js";
import { shellQuote } from "../../../../lib/shell-quote.js";
import { neutraliseLine } from "../../../../lib/terminal/terminal.js";
import type { SandboxDenial } from "../../../../sandbox/index.js";
import type { ActionToReview } from "../../../../tools/index.js";
import { codexChanges } from "../events/codex-changes.js";
import { parsedCommand } from "../events/parsed-command.js";

/** The parameters of an `elicitation/create`. */
export interface Elicitation {
  readonly message: string;
  readonly requestedSchema: {
    type: "object";
    properties: Record<string, Record<string, unknown>>;
    required: string[];
  };
  readonly [extra: string]: unknown;
}

/** The call that a question belongs to. */
export interface QuestionOrigin {
  threadId: string;
  turnId: string;
  /** The client's id of its `tools/call`. */
  requestId: string | number;
}

const NO = "denied";
const MAX_HALF_LINE = 2000;
/** A longer prefix cannot be taken in at a glance, and is not offered. */
const MAX_PREFIX_CHARS = 120;
const PREFIX = "approved_prefix";

/**
 * Asks for approval in two ways at once: with a form, as the MCP specification says, and with the `codex_`
 * parameters of Codex. Clients answer the form with `{ action, content }`, and the parameters with `{
 * decision }`.
 */
export function approvalQuestion(request: ApprovalRequest, origin: QuestionOrigin): Elicitation {
  const { action, prefix } = request;
  const choices = choicesOf(prefix);
  return {
    message: messageOf(request),
    requestedSchema: {
      type: "object",
      properties: {
        decision: {
          type: "string",
          title: "Decision",
          description: "Whether it may go ahead",
          enum: choices.map(({ value }) => value),
          enumNames: choices.map(({ label }) => label),
        },
      },
      required: ["decision"],
    },
    threadId: origin.threadId,
    codex_elicitation: elicitationKinds[action.kind],
    codex_mcp_tool_call_id: String(origin.requestId),
    codex_event_id: origin.turnId,
    codex_call_id: request.callId ?? "",
    ...subjectOf(action),
  };
}

const elicitationKinds: Record<ActionToReview["kind"], string> = {
  command: "exec-approval",
  patch: "patch-approval",
  "mcp-call": "mcp-tool-call-approval",
};

function subjectOf(action: ActionToReview): Readonly<Record<string, unknown>> {
  switch (action.kind) {
    case "command":
      return {
        codex_command: action.argv,
        codex_cwd: action.cwd,
        codex_parsed_cmd: [parsedCommand(action.argv)],
      };
    case "patch":
      return { codex_changes: codexChanges(action, action.cwd) };
    case "mcp-call":
      return { codex_server: action.server, codex_tool: action.name, codex_arguments: action.arguments };
    default:
      return action satisfies never;
  }
}

/** For commands and patches, the first line has the words of Codex. */
function askedLines(action: ActionToReview): string[] {
  switch (action.kind) {
    case "command":
      return [`Allow Codex to run \`${line(shellQuote(action.argv))}\` in \`${line(action.cwd)}\`?`];
    case "patch":
      return [
        "Allow Codex to apply proposed code changes?",
        ...action.changes.map(({ kind, path }) => `${kind} ${line(path)}`),
      ];
    case "mcp-call": {
      const args = isTooDeep(action.arguments) ? "nested too deeply" : JSON.stringify(action.arguments);
      return [
        `Allow Codex to call the tool \`${line(action.name)}\` of the MCP server \`${line(action.server)}\`?`,
        `Arguments: ${line(args)}`,
      ];
    }
    default:
      return action satisfies never;
  }
}

const codexDecision = z.looseObject({
  decision: z.union([
    z.string(),
    z.looseObject({
      approved_execpolicy_amendment: z.looseObject({
        proposed_execpolicy_amendment: z.array(z.string()),
      }),
    }),
  ]),
});

const standardReply = z.looseObject({
  action: z.string(),
  content: z.looseObject({ decision: z.string() }).nullish(),
});

/** Reads a client's answer in either form. Whatever is no clear approval denies. */
export function approvalAnswer(reply: unknown, { prefix }: Pick<ApprovalRequest, "prefix">): ApprovalAnswer {
  const codex = codexDecision.safeParse(reply);
  if (codex.success) {
    const { decision } = codex.data;
    return typeof decision === "string"
      ? answerNamed(decision, prefix)
      : { approvedPrefix: decision.approved_execpolicy_amendment.proposed_execpolicy_amendment };
  }
  const standard = standardReply.safeParse(reply);
  if (!standard.success || standard.data.action !== "accept") return NO;
  return answerNamed(standard.data.content?.decision ?? NO, prefix);
}

function answerNamed(name: string, prefix: readonly string[] | null): ApprovalAnswer {
  if (name === "approved" || name === "approved_for_session" || name === "abort") return name;
  return name === PREFIX && prefix !== null ? { approvedPrefix: prefix } : NO;
}

function choicesOf(prefix: readonly string[] | null): { value: string; label: string }[] {
  const all = prefix === null ? "" : neutraliseLine(shellQuote(prefix));
  const isOffered = all !== "" && all.length <= MAX_PREFIX_CHARS;
  return [
    { value: "approved", label: "Yes" },
    { value: "approved_for_session", label: "Yes, and do not ask again for it in this session" },
    ...(isOffered ? [{ value: PREFIX, label: `Yes, and for every command that begins with: ${all}` }] : []),
    { value: NO, label: "No" },
    { value: "abort", label: "No, and end the turn" },
  ];
}

/**
 * No text of the model or of a command begins a line of its own, where it could pass for a sentence of brig.
 */
function messageOf({ action, place, reason, denial, agent }: ApprovalRequest): string {
  const isCommand = action.kind === "command";
  const justification = isCommand ? action.escalation.justification : null;
  return [
    ...askedLines(action),
    ...(agent === undefined ? [] : [`The agent ${line(agent.nickname)} asks, which Codex has started.`]),
    ...(place === "escalated"
      ? ["It would run outside the sandbox: as root, with a network, and with full access to the workspace."]
      : []),
    ...(isCommand && action.takesInput
      ? ["It stays open: the agent can type into it later without asking."]
      : []),
    ...(reason === null ? [] : [`Why: ${line(reason)}`]),
    ...(denial === null ? [] : [`The first attempt failed: ${line(failureOf(denial))}`]),
    ...(justification === null ? [] : [`The agent says: “${line(justification)}”`]),
  ].join("\n");
}

/** Says where the evidence comes from, since the output of a command proves nothing. */
function failureOf({ errno, evidence, toldBy }: SandboxDenial): string {
  const source = toldBy === "kernel" ? "" : ", going by the command's own output, which can say anything";
  return evidence === "" ? errno + source : `${errno}${source}: ${evidence}`;
}

/** Puts a text on one line. Only the beginning and the end of a very long one are shown. */
function line(text: string): string {
  const shown = neutraliseLine(text);
  const leftOut = shown.length - 2 * MAX_HALF_LINE;
  if (leftOut <= 0) return shown;
  return `${shown.slice(0, MAX_HALF_LINE)} … ${leftOut} characters left out … ${shown.slice(-MAX_HALF_LINE)}`;
}
