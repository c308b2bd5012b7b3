import type { RecordedState, RecordedWorkspace } from "../../agent/index.js";
import type { SandboxSettings } from "../../sandbox/index.js";
import { isBrigError } from "../../errors.js";
import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import type { CliContext } from "../context.js";
import { say } from "../render.js";
import type { SandboxFlags } from "../setup/sandbox-flags.js";

/** The state that a session's workspace gets before its first command. */
export interface WorkspaceStart {
  /** The kept state, and the number of its restore point; null for the host's files. */
  from: { snapshot: string; point: number | undefined } | null;
  /** Tells the model why the workspace is not as the conversation left it; null if it is. */
  loss: string | null;
}

const fromHost: WorkspaceStart = { from: null, loss: null };

/** A session that had a copy-on-write workspace gets one again, unless the flag says otherwise. */
export async function withSessionWorkspace<Flags extends SandboxFlags>(
  flags: Flags,
  recorded: RecordedWorkspace | null,
  { stderr }: CliContext,
): Promise<Flags> {
  if (recorded === null || flags.workspace === "overlay") return flags;
  if (flags.workspace !== undefined) {
    const what = "what the session changed in its copy-on-write workspace is not there";
    await say(stderr, `brig: with --workspace ${neutraliseLine(flags.workspace)} ${what}\n`);
    return flags;
  }
  const how = "use --workspace bind for your own files";
  await say(stderr, `brig: working in the session's copy-on-write workspace; ${how}\n`);
  return { ...flags, workspace: "overlay" };
}

/**
 * Finds the last state of a session's workspace. If it is no longer stored, the user is warned. Error:
 * `snapshot.invalid` if it is damaged.
 */
export async function workspaceStart(
  recorded: RecordedWorkspace | null,
  { workspace, environment: { brigHome } }: Pick<SandboxSettings, "workspace" | "environment">,
  { isOverlay, stderr }: Pick<CliContext, "stderr"> & { isOverlay: boolean },
): Promise<WorkspaceStart> {
  if (recorded === null) return fromHost;
  const found = await firstKept(recorded.states, brigHome);
  if (found === null) return fromHost;
  if (!isOverlay)
    return { from: null, loss: "From now on you work on the user's own files, not on a copy of them." };
  if (found.kind === "missing") {
    const what = `the state of the session's workspace, ${neutraliseLine(found.snapshot)}, is not kept any more`;
    await say(stderr, `brig: ${what}, so it starts from your files as they are\n`);
    return {
      from: null,
      loss: "The state of the workspace was not kept: it is as the user's own files are.",
    };
  }
  if (found.workspace !== workspace) {
    const where = neutralise(found.workspace);
    await say(
      stderr,
      `brig: the state of the session's workspace is one of ${where}, so it is not used here\n`,
    );
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
