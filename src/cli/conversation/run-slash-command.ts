import type { Conversation, SessionSetting } from "../../agent/index.js";
import { isBrigError } from "../../errors.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import type { SandboxMode } from "../../sandbox/index.js";
import {
  compareModes,
  describeNetwork,
  isNoLooser,
  isSandboxMode,
  nameOfPolicy,
  SANDBOX_MODES,
} from "../../sandbox/index.js";
import { applyToHost, showDiff, undoLastCall } from "./changes-commands.js";
import { keyHelp, modePermissions, type SlashCommand, slashCommands } from "./input/slash-commands.js";
import type { Question } from "./question.js";
import { contextLeft } from "./screen/banner.js";
import { notice } from "./screen/block.js";
import { failureNotice } from "./screen/view-event.js";
import type { SlashCall, SlashParts } from "./slash-call.js";

/** Runs a slash command and shows its errors. Throws only because of a bug in brig. */
export async function runSlashCommand(
  { name }: SlashCommand,
  call: SlashCall,
  parts: SlashParts,
): Promise<void> {
  try {
    await dispatch(name, call, parts);
  } catch (error) {
    if (call.signal.aborted) return;
    if (!isBrigError(error)) throw error;
    parts.show(failureNotice(error));
  }
}

async function dispatch(name: SlashCommand["name"], call: SlashCall, parts: SlashParts): Promise<void> {
  const { show } = parts;
  switch (name) {
    case "status":
      return show({ kind: "report", title: "this session", rows: await statusRows(parts) });
    case "diff":
      return await showDiff(call, parts);
    case "apply":
      return await applyToHost(call, parts);
    case "undo":
      return await undoLastCall(call, parts);
    case "tools":
      return show({ kind: "report", title: "tools", rows: parts.describeTools() });
    case "help":
      return show({ kind: "report", title: "commands and keys", rows: helpRows() });
    case "mode":
      return await changeMode(call, parts);
    case "network": {
      const { networkCommand } = await import("./network-command.js");
      return await networkCommand(call, parts);
    }
    case "compact":
      return await compact(call, parts);
    case "model": {
      const { modelCommand } = await import("./model-command.js");
      return await modelCommand(call, parts);
    }
    case "new":
    case "clear":
      return await parts.sessions?.startNew({ clears: name === "clear", signal: call.signal });
    case "resume":
      return await resumeSession(call, parts);
    case "review": {
      const { reviewCommand } = await import("./review-command.js");
      return await reviewCommand(call, parts);
    }
    case "mcp": {
      const { showServers } = await import("./mcp-command.js");
      return showServers(parts);
    }
    case "quit":
      return;
    default:
      return name satisfies never;
  }
}

function helpRows(): (readonly [string, string])[] {
  const commands = slashCommands.map(
    ({ name, argument, summary }) =>
      [`/${name}${argument === undefined ? "" : ` ${argument}`}`, summary] as const,
  );
  return [...commands, ...keyHelp];
}

async function resumeSession({ signal }: SlashCall, parts: SlashParts): Promise<void> {
  const { sessions, context, questions, conversation } = parts;
  if (sessions === null || context === null) return;
  const { chooseSession } = await import("./choose-session.js");
  const { sessionFile: present, setting } = conversation;
  const { cwd } = setting;
  const path = await chooseSession(questions, { home: context.environment.brigHome, cwd, present, signal });
  if (path !== null) await sessions.goOnWith(path, { signal });
}

async function statusRows({ conversation }: SlashParts): Promise<(readonly [string, string])[]> {
  const { setting, usage, agentUsage, threadId, sessionFile, model } = conversation;
  const { inputTokens, cachedInputTokens, outputTokens } = usage;
  return [
    ["model", neutraliseLine(`${model.model} (${model.provider})`)],
    ["effort", neutraliseLine(model.reasoningEffort ?? "the endpoint's own")],
    ["mode", setting.sandboxMode],
    ["approvals", nameOfPolicy(setting.approvalPolicy ?? "never")],
    ["network", networkText(setting)],
    ["workspace", neutraliseLine(setting.cwd)],
    ["container", await describeContainer(conversation)],
    ["session", threadId],
    ["file", neutraliseLine(sessionFile ?? "none")],
    ["context", contextLeft(conversation)[0] ?? "of unknown size"],
    ["tokens", `${inputTokens} in (${cachedInputTokens} cached), ${outputTokens} out`],
    ...(agentUsage.inputTokens === 0
      ? []
      : [["of agents", `${agentUsage.inputTokens} in, ${agentUsage.outputTokens} out`] as const]),
  ];
}

function networkText({ network }: SessionSetting): string {
  return describeNetwork(network.kind === "allowlist" ? { ...network, hosts: [...network.hosts] } : network);
}

/** Does not wait while the container is still starting. */
async function describeContainer({ sandbox }: Conversation): Promise<string> {
  const starting = "starting";
  try {
    const ready = await Promise.race([sandbox, Promise.resolve(starting)]);
    if (typeof ready === "string") return ready;
    return neutraliseLine([ready.id, ...(ready.image === undefined ? [] : [ready.image])].join(" from "));
  } catch (error) {
    return neutraliseLine(`did not start: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function changeMode({ argument, signal }: SlashCall, parts: SlashParts): Promise<void> {
  const { conversation, setup, questions, show } = parts;
  const current = conversation.setting.sandboxMode;
  if (!isSandboxMode(argument)) {
    const modes = SANDBOX_MODES.join(", ");
    const text = argument === "" ? `the mode is ${current}` : `"${neutraliseLine(argument)}" is not a mode`;
    return show({
      kind: "notice",
      tone: argument === "" ? "quiet" : "warning",
      text,
      hint: `/mode ${modes}`,
    });
  }
  if (argument === current) return show(notice(`the mode is already ${current}`));
  // A user's own policy cannot be compared with a mode, so every mode counts as weaker than it.
  if (!isNoLooser(compareModes(argument, current))) {
    const answer = await questions.ask(weakerQuestion(argument, current), { signal });
    if (answer.kind !== "choice" || answer.choice.key !== "y")
      return show(notice(`the mode stays ${current}`));
  }
  await conversation.changeSetting(await setup.inMode(argument));
  show(
    notice(
      `${argument} from now on. The container was replaced: running commands were stopped, and approvals you gave are forgotten`,
    ),
  );
  parts.onNewSandbox();
}

function weakerQuestion(wanted: SandboxMode, current: string): Question {
  return {
    lines: [
      { text: `Change from ${current} to ${wanted}?`, tone: "warning" },
      { text: `The model's tool calls can then ${modePermissions[wanted]}.`, tone: "plain" },
    ],
    choices: [
      { key: "y", label: "yes" },
      { key: "n", label: "no" },
    ],
    takesText: false,
    dismissal: "no",
  };
}

const compactionTexts = {
  nothing: "there is nothing to summarise yet",
  interrupted: "interrupted; the conversation is unchanged",
};

async function compact({ signal }: SlashCall, { conversation, show }: SlashParts): Promise<void> {
  const outcome = await conversation.compact({ signal });
  if (outcome.kind === "failed") show(failureNotice(outcome.error));
  else if (outcome.kind !== "compacted") show(notice(compactionTexts[outcome.kind]));
}
