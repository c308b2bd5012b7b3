import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AgentEvent } from "../../src/agent/turn/events.js";
import type { ApprovalPolicy } from "../../src/sandbox/policy/approval-policy.js";
import type { SandboxMode } from "../../src/sandbox/policy/modes.js";
import { type PlayedCall, playApprovals, ScriptedApprover } from "../support/approvals.js";
import {
  openTestSandbox,
  type TemporaryDirectory,
  type TestSandbox,
  temporaryDirectory,
} from "../support/sandbox.js";

const granular = (sandbox_approval: boolean): ApprovalPolicy => ({
  granular: {
    sandbox_approval,
    rules: false,
    skill_approval: false,
    request_permissions: false,
    mcp_elicitations: false,
  },
});

const policies = {
  untrusted: "untrusted",
  "on-failure": "on-failure",
  "on-request": "on-request",
  never: "never",
  "granular that asks": granular(true),
  "granular that refuses": granular(false),
} satisfies Record<string, ApprovalPolicy>;
type PolicyName = keyof typeof policies;

const modes = ["read-only", "workspace-write", "danger-full-access"] as const satisfies SandboxMode[];

/** Each command prints where it ran: a file that both sandboxes have says which one it is. */
const commands = {
  safe: "cat /tmp/place",
  dangerous: "rm -f -- nothing && cat /tmp/place",
  other: "sort /tmp/place",
  escalated: "sort /tmp/place",
  /** Fails in a sandbox with EROFS, after it said where it was. */
  denied: "sort /tmp/place && touch /etc/brig-approved",
};
type Kind = keyof typeof commands;

/** What happens to a command before and after its first attempt. */
type Cell =
  | "runs"
  /** In the sandbox, once approved. */
  | "asks"
  /** Outside, once approved. */
  | "asks to leave"
  /** In the sandbox first, and again outside once approved. */
  | "runs, asks to leave"
  /** In the sandbox once approved, and again outside once that is approved too. */
  | "asks, asks to leave"
  | { refused: string };

const rejects = (policy: string) => (tool: string) =>
  `approval policy is ${policy}; reject command — you ${tool === "exec_command" ? "cannot" : "should not"} ask for escalated permissions if the approval policy is ${policy}`;

const blocked = (command: string) =>
  `\`${command}\` rejected: rm -f style commands are not permitted. Use a safer approach`;
const granularRefusal = "approval required by policy, but AskForApproval::Granular.sandbox_approval is false";

/** The table of the specification, a row for each policy and kind: in a restricted sandbox, and with full access. */
function cellOf(policy: PolicyName, kind: Kind, tool: Tool, mode: SandboxMode): Cell {
  const isFull = mode === "danger-full-access";
  const codex = { untrusted: "UnlessTrusted", "on-failure": "OnFailure", never: "Never" };
  switch (kind) {
    case "safe":
      return "runs";
    case "dangerous":
      if (policy === "never") return isFull ? "runs" : { refused: blocked(shownCommand(kind, tool)) };
      return policy === "granular that refuses" ? { refused: granularRefusal } : "asks";
    case "other":
      return policy === "untrusted" ? "asks" : "runs";
    case "escalated":
      if (policy === "on-request") return isFull ? "runs" : "asks to leave";
      return { refused: rejects(policy in codex ? codex[policy as keyof typeof codex] : "Granular")(tool) };
    case "denied":
      if (isFull) return policy === "untrusted" ? "asks" : "runs";
      if (policy === "untrusted") return "asks, asks to leave";
      return policy === "on-failure" || policy === "granular that asks" ? "runs, asks to leave" : "runs";
  }
}

const tools = ["shell", "exec_command"] as const;
type Tool = (typeof tools)[number];

const answers = { approves: "approved", declines: "denied", nobody: null } as const;
type Asked = keyof typeof answers;

function callOf(tool: Tool, kind: Kind): PlayedCall {
  const command = commands[kind];
  const escalation = kind === "escalated" ? { sandbox_permissions: "require_escalated" } : {};
  if (tool === "shell") return { shell: { command: ["bash", "-c", command], ...escalation } };
  return { exec_command: { cmd: command, login: false, ...escalation } };
}

function shownCommand(kind: Kind, tool: Tool): string {
  return `${tool === "shell" ? "bash" : "/usr/bin/bash"} -c '${commands[kind]}'`;
}

/** What a person is asked, where the command ran, one after the other, and what the model reads. */
interface Happening {
  questions: number;
  ran: string[];
  told: string;
}

const DENIAL = "touch: cannot touch '/etc/brig-approved': Read-only file system";
const DECLINED_NOTE = "[not run again with full access: rejected by user]";

function expected(
  cell: Cell,
  { kind, tool, mode, asked }: { kind: Kind; tool: Tool; mode: SandboxMode; asked: Asked },
): Happening {
  const isDenied = kind === "denied" && mode !== "danger-full-access";
  const failed = `sandbox | ${DENIAL}`;
  const here = isDenied ? failed : "sandbox";
  const rejected = asked === "declines" ? rejection("rejected by user", kind, tool) : nobody(kind, tool);
  const questions = asked === "nobody" ? 0 : 1;
  if (typeof cell === "object") {
    const isEarly = kind === "escalated";
    return { questions: 0, ran: [], told: isEarly ? cell.refused : rejection(cell.refused, kind, tool) };
  }
  switch (cell) {
    case "runs":
      return { questions: 0, ran: ["sandbox"], told: here };
    case "asks":
      return asked === "approves"
        ? { questions, ran: ["sandbox"], told: here }
        : { questions, ran: [], told: rejected };
    case "asks to leave":
      return asked === "approves"
        ? { questions, ran: ["escalated"], told: "escalated" }
        : { questions, ran: [], told: rejected };
    case "runs, asks to leave":
      if (asked === "approves") return { questions, ran: ["sandbox", "escalated"], told: "escalated" };
      return {
        questions,
        ran: ["sandbox"],
        told: asked === "declines" ? `${failed} | ${DECLINED_NOTE}` : failed,
      };
    case "asks, asks to leave":
      return asked === "approves"
        ? { questions: 2, ran: ["sandbox", "escalated"], told: "escalated" }
        : { questions, ran: [], told: rejected };
  }
}

function rejection(reason: string, kind: Kind, tool: Tool): string {
  if (tool === "shell") return reason === "rejected by user" ? "exec command rejected by user" : reason;
  const message = JSON.stringify(`Rejected(${JSON.stringify(reason)})`);
  return `exec_command failed for \`${shownCommand(kind, tool)}\`: CreateProcess { message: ${message} }`;
}

function nobody(kind: Kind, tool: Tool): string {
  return rejection("approval required by policy, but nobody is there to approve it", kind, tool);
}

/** The output without what differs from run to run. */
function toldIn(content: string): string {
  const output = content.startsWith('{"output":')
    ? (JSON.parse(content) as { output: string }).output
    : content.includes("\nOutput:\n")
      ? content.slice(content.indexOf("\nOutput:\n") + 9)
      : content;
  return output
    .split("\n")
    .filter((line) => line !== "")
    .join(" | ");
}

function placesIn(events: readonly AgentEvent[]): string[] {
  return events.flatMap((event) =>
    event.kind === "command-ended" ? [(event.output.match(/^(?:sandbox|escalated)$/m) ?? ["?"])[0]] : [],
  );
}

let directory: TemporaryDirectory;
const sandboxes = new Map<SandboxMode | "escalated", TestSandbox>();

beforeAll(async () => {
  directory = await temporaryDirectory();
  await writeFile(join(directory.path, "file"), "");
  const workspace = directory.path;
  for (const mode of modes) {
    const opened = await openTestSandbox({ workspace, mode });
    sandboxes.set(mode, opened);
    await opened.sandbox.files.write("/tmp/place", "sandbox\n");
  }
  const escalated = await openTestSandbox({ workspace, mode: "danger-full-access" });
  sandboxes.set("escalated", escalated);
  await escalated.sandbox.files.write("/tmp/place", "escalated\n");
});

afterAll(async () => {
  for (const opened of sandboxes.values()) await opened[Symbol.asyncDispose]();
  await directory?.[Symbol.asyncDispose]();
});

function sandboxOf(name: SandboxMode | "escalated") {
  const opened = sandboxes.get(name);
  if (opened === undefined) throw new Error(`no sandbox ${name}`);
  return opened.sandbox;
}

const cases = (Object.keys(policies) as PolicyName[]).flatMap((policy) =>
  modes.map((mode) => [policy, mode] as const),
);

describe("what is done with a command, by policy, mode and kind", () => {
  it.each(cases)("%s in %s", async (policy, mode) => {
    const seen: Record<string, Happening> = {};
    const wanted: Record<string, Happening> = {};
    for (const tool of tools)
      for (const asked of Object.keys(answers) as Asked[])
        for (const kind of Object.keys(commands) as Kind[]) {
          const answer = answers[asked];
          const approver = answer === null ? undefined : new ScriptedApprover(answer);
          const { events, outputs, result } = await playApprovals({
            responses: [[callOf(tool, kind)]],
            cwd: directory.path,
            sandbox: sandboxOf(mode),
            escalated: () => Promise.resolve(sandboxOf("escalated")),
            situation: {
              policy: policies[policy],
              isRestricted: mode !== "danger-full-access",
              hasNetwork: mode === "danger-full-access",
              canEscalate: true,
            },
            approver,
          });
          expect(result.status).toBe("completed");
          const name = `${kind} by ${tool}, ${asked}`;
          seen[name] = {
            questions: approver?.asked.length ?? 0,
            ran: placesIn(events),
            told: toldIn(outputs[0] ?? ""),
          };
          wanted[name] = expected(cellOf(policy, kind, tool, mode), { kind, tool, mode, asked });
        }
    expect(seen).toEqual(wanted);
  });
});
