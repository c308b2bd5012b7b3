import type {
  ApprovalAnswer,
  ApprovalRequest,
  ApprovalSituation,
  Approver,
} from "../../src/agent/approvals/approvals.js";
import { SessionApprovals } from "../../src/agent/approvals/approvals.js";
import { parseScript } from "../../src/agent/model/script/script.js";
import { createScriptedClient } from "../../src/agent/model/script/scripted-client.js";
import { type AgentResult, type RunAgentOptions, runAgent } from "../../src/agent/run-agent.js";
import type { AgentEvent } from "../../src/agent/turn/events.js";
import { createToolRegistry } from "../../src/tools/registry.js";
import type { ToolGates } from "../../src/tools/tool-gates.js";
import type { ToolSandbox } from "../../src/tools/tool-sandbox.js";

/** Answers from a list, the last one for ever, and remembers what it was asked. */
export class ScriptedApprover implements Approver {
  readonly asked: ApprovalRequest[] = [];
  readonly #answers: ApprovalAnswer[];

  constructor(...answers: ApprovalAnswer[]) {
    this.#answers = answers;
  }

  ask(request: ApprovalRequest): Promise<ApprovalAnswer> {
    this.asked.push(request);
    const answer = this.#answers.length > 1 ? this.#answers.shift() : this.#answers[0];
    return Promise.resolve(answer ?? "denied");
  }
}

/** A call of a tool with its arguments; those of a freeform tool are a text. */
export type PlayedCall = Readonly<Record<string, unknown>>;

export interface ApprovalPlay {
  /** The calls of each response of the model. */
  responses: readonly (readonly PlayedCall[])[];
  /** Patterns that the outputs of each response's calls match; named groups fill `${name}` in later calls. */
  expectations?: readonly (readonly string[])[] | undefined;
  cwd: string;
  sandbox: RunAgentOptions["sandbox"];
  escalated?: (() => Promise<ToolSandbox>) | undefined;
  situation: ApprovalSituation;
  approver?: Approver | undefined;
  gates?: ToolGates | undefined;
  environment?: Readonly<Record<string, string>> | undefined;
  signal?: AbortSignal | undefined;
  session?: RunAgentOptions["session"];
  onEvent?: ((event: AgentEvent) => void) | undefined;
}

export interface PlayedApprovals {
  result: AgentResult;
  events: AgentEvent[];
  /** What the model was told of each call, in the order of the calls. */
  outputs: string[];
}

/** Plays calls through the whole loop, with approvals, in the sandboxes given. */
export async function playApprovals(play: ApprovalPlay): Promise<PlayedApprovals> {
  const { responses, cwd, situation, approver } = play;
  const events: AgentEvent[] = [];
  const expectedBefore = (step: number) => {
    const patterns = play.expectations?.[step - 1] ?? [];
    return patterns.length === 0 ? {} : { expect: patterns.map((matches) => ({ matches })) };
  };
  const steps = [
    ...responses.map((calls, step) => ({ calls, ...expectedBefore(step) })),
    { text: "done", ...expectedBefore(responses.length) },
  ];
  const result = await runAgent({
    prompt: "work",
    model: createScriptedClient(parseScript(JSON.stringify({ steps }), "play.yaml")),
    sandbox: play.sandbox,
    setting: {
      cwd,
      sandboxMode: "workspace-write",
      network: { kind: "none" },
      writableRoots: [],
      shell: "bash",
      timezone: "UTC",
    },
    tools: (sandbox) =>
      createToolRegistry(sandbox, {
        cwd,
        gates: play.gates,
        environment: play.environment,
        review: new SessionApprovals({ situation, approver }),
        escalatedSandbox: play.escalated,
      }),
    signal: play.signal,
    session: play.session,
    onEvent: (event) => {
      events.push(event);
      play.onEvent?.(event);
    },
  });
  const outputs = events.flatMap((event) => (event.kind === "call-ended" ? [event.content] : []));
  return { result, events, outputs };
}
