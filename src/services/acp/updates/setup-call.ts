import { randomUUID } from "node:crypto";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { AgentEvent } from "../../../agent/index.js";
import { commandForPeople } from "../../../tools/index.js";
import type { ClientFeatures } from "../client-link.js";
import type { CommandOutputs } from "./command-output.js";
import { textContent } from "./file-diffs.js";
import { fenced, longText, titleText } from "./shown-text.js";

export type SetupEvent = Extract<AgentEvent, { kind: "setup-started" | "setup-output" | "setup-ended" }>;

interface SetupCallParts {
  features: ClientFeatures;
  cwd: string;
  outputs: CommandOutputs;
  send(update: SessionUpdate): void;
}

/** Shows the set-up of a session as a call of its own, which no model has made. */
export class SetupCall {
  readonly #parts: SetupCallParts;
  /** Id by which the editor knows the call that stands for the set-up. Null while no set-up runs. */
  #id: string | null = null;

  constructor(parts: SetupCallParts) {
    this.#parts = parts;
  }

  take(event: SetupEvent): void {
    switch (event.kind) {
      case "setup-started":
        this.#start(event);
        break;
      case "setup-output":
        if (this.#id !== null) this.#parts.outputs.push(this.#id, event.chunk);
        break;
      case "setup-ended":
        this.#end(event);
        break;
      default:
        event satisfies never;
    }
  }

  /** A set-up that still runs has failed, as far as its turn is concerned. */
  fail(): void {
    this.#end({ kind: "setup-ended", exitCode: null, durationMs: null, output: null });
  }

  #start({ argv, network }: AgentEvent & { kind: "setup-started" }): void {
    this.fail();
    const { features, cwd, outputs, send } = this.#parts;
    const id = `setup-${randomUUID()}`;
    this.#id = id;
    outputs.start(id);
    const terminal = features.showsTerminalOutput
      ? {
          content: [{ type: "terminal" as const, terminalId: id }],
          _meta: { terminal_info: { terminal_id: id, cwd } },
        }
      : {};
    send({
      sessionUpdate: "tool_call",
      toolCallId: id,
      title: titleText(`Set up: ${commandForPeople(argv)}`),
      kind: "execute",
      status: "in_progress",
      rawInput: { command: longText(commandForPeople(argv)), network },
      ...terminal,
    });
  }

  #end({ exitCode, output }: AgentEvent & { kind: "setup-ended" }): void {
    const id = this.#id;
    if (id === null) return;
    this.#id = null;
    const { features, outputs, send } = this.#parts;
    outputs.end(id);
    const isShown = features.showsTerminalOutput;
    send({
      sessionUpdate: "tool_call_update",
      toolCallId: id,
      status: exitCode === 0 ? "completed" : "failed",
      ...(isShown || output === null ? {} : { content: [textContent(fenced(longText(output)))] }),
      ...(exitCode === null ? {} : { rawOutput: { exit_code: exitCode } }),
      ...(isShown && {
        _meta: { terminal_exit: { terminal_id: id, exit_code: exitCode, signal: null } },
      }),
    });
  }
}
