import { posix } from "node:path";
import type { SentContext, SessionSetting } from "../session/setting.js";
import { approvalGuidance } from "./approvals-guidance.js";

const environmentParts: readonly ((context: SentContext) => EnvironmentPart)[] = [
  ({ setting: { cwd } }) => line("cwd", cwd),
  ({ setting: { shell } }) => line("shell", posix.basename(shell)),
  ({ date }) => line("current_date", date),
  ({ setting: { timezone } }) => line("timezone", timezone),
  ({ setting: { sandboxMode } }) => line("sandbox_mode", sandboxMode),
  ({ setting: { network } }) => ({ lines: networkLines(network), isEmpty: false }),
  ({ setting }) => {
    const roots = writableRootsOf(setting);
    return { lines: listLines("writable_roots", "root", roots), isEmpty: roots.length === 0 };
  },
];

interface EnvironmentPart {
  lines: readonly string[];
  /** Whether the lines say nothing unless an earlier block said something else. */
  isEmpty: boolean;
}

/** Describes where the session works, or only what differs from `before`; null if nothing differs. */
export function environmentBlock(now: SentContext, before: SentContext | null): string | null {
  const changed = environmentParts.flatMap((part) => {
    const { lines, isEmpty } = part(now);
    if (before === null) return isEmpty ? [] : lines;
    return part(before).lines.join("\n") === lines.join("\n") ? [] : lines;
  });
  if (changed.length === 0) return null;
  return ["<environment_context>", ...changed, "</environment_context>"].join("\n");
}

export function permissionsBlock(setting: SessionSetting): string {
  const { sandboxMode, network, approvalPolicy = "never" } = setting;
  const access = network.kind === "none" ? "restricted" : "enabled";
  const roots = writableRootsOf(setting);
  return [
    "<permissions instructions>",
    `\`sandbox_mode\` is \`${sandboxMode}\`: ${modeMeaning(sandboxMode)}`,
    `Network access is ${access}${network.kind === "allowlist" ? " for the listed hosts only" : ""}.`,
    approvalGuidance(approvalPolicy, { isRestricted: sandboxMode !== "danger-full-access" }),
    ...(sandboxMode === "workspace-write"
      ? [`The writable roots are ${roots.map((root) => `\`${root}\``).join(", ")}.`]
      : []),
    "</permissions instructions>",
  ].join("\n");
}

export function projectDocsBlock(text: string, { cwd }: Pick<SessionSetting, "cwd">): string {
  return `# AGENTS.md instructions for ${cwd}\n\n<INSTRUCTIONS>\n${text}\n</INSTRUCTIONS>`;
}

function writableRootsOf({ sandboxMode, cwd, writableRoots }: SessionSetting): readonly string[] {
  return sandboxMode === "workspace-write" ? [cwd, ...writableRoots] : writableRoots;
}

function modeMeaning(mode: string): string {
  if (mode === "read-only") return "files can be read; only temporary directories can be written.";
  if (mode === "workspace-write")
    return "files can be read, and written in the writable roots and temporary directories.";
  if (mode === "danger-full-access") return "files can be read and written anywhere in the container.";
  return "a policy of the user's own decides what can be written.";
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

function line(name: string, text: string): EnvironmentPart {
  return { lines: [`  <${name}>${escapeXml(text)}</${name}>`], isEmpty: false };
}

function listLines(name: string, item: string, texts: readonly string[]): string[] {
  if (texts.length === 0) return [`  <${name} />`];
  return [`  <${name}>`, ...texts.map((text) => `    <${item}>${escapeXml(text)}</${item}>`), `  </${name}>`];
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
