import { posix } from "node:path";
import { type MessageItem, textMessage } from "../model/items.js";

/** Where and how the session runs, as far as the model is told. */
export interface SessionSetting {
  /** Absolute path inside the sandbox. */
  cwd: string;
  /** E.g. `workspace-write`, or the name of a policy file. */
  sandboxMode: string;
  network: { kind: "none" } | { kind: "full" } | { kind: "allowlist"; hosts: readonly string[] };
  /** Directories besides the working directory that may be written to. */
  writableRoots: readonly string[];
  /** Name or path of the shell. */
  shell: string;
  /** E.g. `Europe/Berlin`. */
  timezone: string;
}

export const defaultInstructions = `You are a coding agent. You work in a sandbox: a container that holds the user's project, reached only through your tools.

- Do what was asked, completely, and nothing else. Read the code before you change it; keep to its style.
- Search with rg and rg --files. Start narrow and widen only when that finds nothing.
- Group related calls into one command or one turn instead of many small ones.
- After an edit do not read the file again to see whether it took effect: a failed edit says so.
- Run the tests that cover a change, and look at their output, before you call it done.
- A command that fails because the sandbox forbids it will fail again: find another way, or say what is needed.
- End with a short summary for the user: what was wrong, what you changed, how you checked it.`;

/** The messages that come before the user's first one. */
export function initialContext(setting: SessionSetting, now: Date): MessageItem[] {
  return [
    textMessage("developer", permissionsBlock(setting)),
    textMessage("user", environmentBlock(setting, now)),
  ];
}

/** What the user asked, with images as data URLs. */
export function userMessage(prompt: string, images: readonly string[]): MessageItem {
  const shown = images.flatMap((url, index): MessageItem["content"] => [
    { type: "input_text", text: `<image name=[Image #${index + 1}]>` },
    { type: "input_image", image_url: url },
    { type: "input_text", text: "</image>" },
  ]);
  return { type: "message", role: "user", content: [...shown, { type: "input_text", text: prompt }] };
}

/** Tells the model, in the next turn, that this one was stopped. */
export function abortedTurnMessage(): MessageItem {
  return textMessage(
    "user",
    "<turn_aborted>\nThe user stopped this turn. Commands that were running were ended and may have done a part of their work: " +
      "check before you repeat them.\n</turn_aborted>",
  );
}

/** `YYYY-MM-DD` in a time zone. */
export function localDate(now: Date, timezone: string): string {
  return new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, dateStyle: "short" }).format(now);
}

function environmentBlock(setting: SessionSetting, now: Date): string {
  return [
    "<environment_context>",
    `  <cwd>${escapeXml(setting.cwd)}</cwd>`,
    `  <shell>${escapeXml(posix.basename(setting.shell))}</shell>`,
    `  <current_date>${localDate(now, setting.timezone)}</current_date>`,
    `  <timezone>${escapeXml(setting.timezone)}</timezone>`,
    ...networkLines(setting.network),
    "</environment_context>",
  ].join("\n");
}

function networkLines(network: SessionSetting["network"]): string[] {
  if (network.kind === "none") return ['  <network enabled="false" />'];
  if (network.kind === "full") return ['  <network enabled="true" />'];
  return [
    '  <network enabled="true">',
    ...network.hosts.map((host) => `    <allowed>${escapeXml(host)}</allowed>`),
    "  </network>",
  ];
}

function permissionsBlock({ sandboxMode, network, cwd, writableRoots }: SessionSetting): string {
  const access = network.kind === "none" ? "restricted" : "enabled";
  return [
    "<permissions instructions>",
    `\`sandbox_mode\` is \`${sandboxMode}\`: ${modeMeaning(sandboxMode)}`,
    `Network access is ${access}${network.kind === "allowlist" ? " for the listed hosts only" : ""}.`,
    "`approval_policy` is `never`: nobody can be asked for more, so do not ask for escalated permissions.",
    ...(sandboxMode === "workspace-write"
      ? [`The writable roots are ${[cwd, ...writableRoots].map((root) => `\`${root}\``).join(", ")}.`]
      : []),
    "</permissions instructions>",
  ].join("\n");
}

function modeMeaning(mode: string): string {
  if (mode === "read-only") return "files can be read; only temporary directories can be written.";
  if (mode === "workspace-write")
    return "files can be read, and written in the writable roots and temporary directories.";
  if (mode === "danger-full-access") return "files can be read and written anywhere in the container.";
  return "a policy of the user's own decides what can be written.";
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
