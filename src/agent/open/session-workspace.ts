import { isBrigError } from "../../errors.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import type { Sandbox, SandboxSettings } from "../../sandbox/index.js";
import { connectAndOpen } from "../../sandbox/index.js";
import type { RecordedState, RecordedWorkspace } from "../session/read/session-reader.js";
import type { AgentSettings, SessionHost } from "./agent-settings.js";

/** The state that a session's workspace gets before its first command. */
export interface WorkspaceStart {
  /** The kept state, and the number of its restore point; null for the host's files. */
  from: { snapshot: string; point: number | undefined } | null;
  /** Tells the model why the workspace is not as the conversation left it; null if it is. */
  loss: string | null;
}

const fromHost: WorkspaceStart = { from: null, loss: null };

/** A session that had a copy-on-write workspace gets one again, unless the settings name another kind. */
export async function withSessionWorkspace<Settings extends Pick<AgentSettings, "sandbox">>(
  settings: Settings,
  recorded: RecordedWorkspace | null,
  { warn }: Pick<SessionHost, "warn">,
): Promise<Settings> {
  const { workspaceKind: kind } = settings.sandbox;
  if (recorded === null || kind === "overlay") return settings;
  if (kind !== undefined) {
    await warn(
      `with --workspace ${kind} what the session changed in its copy-on-write workspace is not there`,
    );
    return settings;
  }
  const how = "use --workspace bind for your own files";
  await warn(`working in the session's copy-on-write workspace; ${how}`);
  return { ...settings, sandbox: { ...settings.sandbox, workspaceKind: "overlay" } };
}

/**
 * Finds the last state of a session's workspace. If it is no longer stored, the user is warned. Error:
 * `snapshot.invalid` if it is damaged.
 */
export async function workspaceStart(
  recorded: RecordedWorkspace | null,
  { workspace, environment: { brigHome } }: Pick<SandboxSettings, "workspace" | "environment">,
  { isOverlay, warn }: Pick<SessionHost, "warn"> & { isOverlay: boolean },
): Promise<WorkspaceStart> {
  if (recorded === null) return fromHost;
  const found = await firstKept(recorded.states, brigHome);
  if (found === null) return fromHost;
  if (!isOverlay)
    return { from: null, loss: "From now on you work on the user's own files, not on a copy of them." };
  if (found.kind === "missing") {
    const what = `the state of the session's workspace, ${neutraliseLine(found.snapshot)}, is not kept any more`;
    await warn(`${what}, so it starts from your files as they are`);
    return {
      from: null,
      loss: "The state of the workspace was not kept: it is as the user's own files are.",
    };
  }
  if (found.workspace !== workspace) {
    await warn(`the state of the session's workspace is one of ${found.workspace}, so it is not used here`);
    return { from: null, loss: "You work in another directory than before, as the user's own files are." };
  }
  return { from: { snapshot: found.snapshot, point: found.point }, loss: null };
}

type Kept =
  | { kind: "kept"; snapshot: string; point: number | undefined; workspace: string }
  | { kind: "missing"; snapshot: string };

/** Null if nothing was ever changed. */
async function firstKept(states: readonly RecordedState[], brigHome: string): Promise<Kept | null> {
  const { openSnapshot } = await import("../../sandbox/index.js");
  for (const { snapshot, point, isCertain } of states) {
    try {
      const at = point ?? undefined;
      const { head } = await openSnapshot(brigHome, snapshot, { point: at });
      return { kind: "kept", snapshot, point: at, workspace: head.workspace };
    } catch (error) {
      if (!isBrigError(error, "snapshot.unknown")) throw error;
      if (isCertain) return { kind: "missing", snapshot };
    }
  }
  return null;
}

/**
 * Returns a function that opens the sandboxes of a session, which share a workspace. The first one that starts brings it into
 * its first state, and later ones use it as it is.
 */
export function sessionSandboxes(
  { from, threadId }: Pick<WorkspaceStart, "from"> & { threadId: string },
  { environment, signal, warn, onSandbox, onCopied }: SessionHost,
): (settings: SandboxSettings) => Promise<Sandbox> {
  let isMade = from === null;
  return async (settings) => {
    const sandbox = await connectAndOpen(() => settings, {
      environment,
      signal,
      onWarning: (warning) => void warn(warning),
      onCopied,
      from: isMade ? null : from,
    });
    isMade = true;
    try {
      await onSandbox?.(sandbox, { threadId });
    } catch (error) {
      await sandbox[Symbol.asyncDispose]();
      throw error;
    }
    return sandbox;
  };
}
