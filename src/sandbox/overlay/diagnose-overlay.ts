import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isBrigError } from "../../errors.js";
import type { Environment } from "../../lib/env.js";
import { type Check, check } from "../docker/diagnosis/check.js";
import type { Engine } from "../docker/engine-types.js";
import { openSandbox } from "../open-sandbox.js";
import { resolveSettings } from "../settings/resolve-settings.js";

const about = { id: "overlay", title: "copy-on-write workspaces" };

/** Starts a sandbox with an empty copy-on-write workspace, and reports whether that works. */
export async function diagnoseOverlay(
  engine: Engine,
  { environment }: { environment: Environment },
): Promise<Check[]> {
  const workspace = await realpath(await mkdtemp(join(tmpdir(), "brig-doctor-")));
  try {
    const settings = await resolveSettings({ workspace, workspaceKind: "overlay", environment });
    const opened = await openSandbox(settings, { engine });
    await opened.release({ isEnding: false });
    return [check({ ...about, found: "a sandbox starts with --workspace overlay" })];
  } catch (error) {
    if (!isBrigError(error)) throw error;
    const found = `${error.code === "image.missing" ? "not tried" : "not possible"}: ${error.message}`;
    return [check({ ...about, found }, { status: "warn", advice: error.hint ?? "use --workspace bind" })];
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
}
