import { isBrigError } from "../../errors.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import type { TruncationPolicy } from "../../sandbox/index.js";
import { truncateOutput } from "../../sandbox/index.js";
import { runUserCommand } from "../../tools/index.js";
import type { AgentSandbox } from "../agent-sandbox.js";
import { type MessageItem, textMessage } from "../model/items.js";
import type { RestorePoints } from "../restore-points/restore-points.js";
import type { SessionSetting } from "../session/setting.js";
import { commandEnvironment } from "../session-tools.js";
import type { Transcript } from "./transcript.js";
import type { Turn } from "./turn.js";

interface UserCommandContext extends Turn {
  threadId: string;
  transcript: Transcript;
  restorePoints: RestorePoints;
  truncation: TruncationPolicy;
  setting: SessionSetting;
  sandboxReady: Promise<AgentSandbox>;
  allowsLoginShell: boolean;
}

/** What Codex reports of a command that was stopped. */
const STOPPED = { exitCode: -1, durationMs: 0 };

/**
 * Runs a command of the person, with the events of a call, and records it with its output for the model. Returns the
 * exit code; null if the command was stopped.
 */
export async function takeUserCommand(script: string, context: UserCommandContext): Promise<number | null> {
  const { id: callId, signal, transcript, setting, sandboxReady } = context;
  const name = "user_shell_command";
  const startedAt = performance.now();
  transcript.emit({ kind: "call-started", callId, name, input: JSON.stringify({ command: script }) });
  const ended = (content: string, success: boolean) =>
    transcript.emit({
      ...{ kind: "call-ended", callId, name, content, success },
      durationMs: performance.now() - startedAt,
    });
  try {
    const sandbox = await beforeAbort(sandboxReady, signal);
    const { end, output } = await runUserCommand(
      sandbox,
      {
        script,
        cwd: setting.cwd,
        environment: commandEnvironment(setting, context.threadId),
        allowsLoginShell: context.allowsLoginShell,
      },
      {
        signal,
        origin: { callId, position: 0 },
        onActivity: (activity) => {
          if (activity.kind !== "advice") transcript.emit({ ...activity, callId });
        },
      },
    );
    const text = truncateOutput(output, context.truncation);
    const told =
      end === null ? `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}command aborted by user` : text;
    transcript.recordItem(userCommandMessage(script, { ...(end ?? STOPPED), output: told }));
    ended(text, end?.exitCode === 0);
    await context.restorePoints.take(callId, { sandbox: sandboxReady, signal });
    return end?.exitCode ?? null;
  } catch (error) {
    ended(isBrigError(error) ? error.message : "stopped", false);
    throw error;
  }
}

/** As Codex tells a model of such a command. */
function userCommandMessage(
  script: string,
  { exitCode, durationMs, output }: { exitCode: number; durationMs: number; output: string },
): MessageItem {
  const lines = [
    "<user_shell_command>",
    "<command>",
    inElement(script),
    "</command>",
    "<result>",
    `Exit code: ${exitCode}`,
    `Duration: ${(durationMs / 1000).toFixed(4)} seconds`,
    "Output:",
    inElement(output),
    "</result>",
    "</user_shell_command>",
  ];
  return textMessage("user", lines.join("\n"));
}

/** Output cannot close its element and go on as if the person wrote it. */
function inElement(text: string): string {
  return text.replaceAll(/<(?=\/(?:command|result|user_shell_command)>)/gi, "<\\");
}
