import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { CliContext } from "../../command/index.js";
import { isBrigError } from "../../errors.js";
import { pause } from "../../lib/time/pause.js";
import type { LastingRecord } from "../../services/index.js";
import { readLasting } from "../../services/index.js";
import { ownerNow } from "../lasting/exec-in.js";
import { reachOwner } from "../lasting/reach-owner.js";
import type { ClaudeSetup } from "./written-setup.js";

/** How long another hook may take that starts the same sandbox. */
const LOOK_MS = 200;
/** How often it is looked for a sandbox that another hook opens. */
const OPENING_TRIES = 150;

/** The name of a project's sandbox. Other options make another sandbox. */
function sandboxName(project: string, { up }: Pick<ClaudeSetup, "up">): string {
  const words = basename(project)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 30);
  const hash = createHash("sha256")
    .update(JSON.stringify([project, up]))
    .digest("hex");
  return `claude-${words}-${hash.slice(0, 10)}`.replace(/--+/g, "-");
}

/** The running sandbox of the project that this directory is in; null if there is none. */
export function sandboxAround(
  directory: string,
  setup: Pick<ClaudeSetup, "up">,
  { environment }: CliContext,
): LastingRecord | null {
  const known = new Map(readLasting(environment.brigHome).map((record) => [record.name, record]));
  for (let project = realpathSync(directory); ; project = dirname(project)) {
    const record = known.get(sandboxName(project, setup));
    if (record?.state === "running" && record.about.workspace === project) return record;
    if (project === dirname(project)) return null;
  }
}

/** Starts the project's sandbox unless it runs. Errors: those of `brig up`. */
export async function ensureSandbox(
  directory: string,
  { up }: Pick<ClaudeSetup, "up">,
  context: CliContext,
): Promise<LastingRecord> {
  const project = realpathSync(directory);
  const name = sandboxName(project, { up });
  const { signal, environment } = context;
  const find = () => readLasting(environment.brigHome).find((record) => record.name === name);
  for (let tries = 1; ; tries++) {
    if (find()?.state === "running") await ownerNow(context);
    const record = find();
    if (record?.state === "running") return record;
    const owner = await reachOwner(context);
    if (record !== undefined) await owner.remove(name, { force: true, signal }).catch(ignoreUnknown);
    const request = { name, argv: [...up], cwd: project, env: {}, variables: environment.variables };
    try {
      await owner.up(request, { signal, tell: () => undefined });
    } catch (error) {
      // Another hook may have taken the name, and its sandbox, which is still being opened, is the same.
      if (!isBrigError(error, "usage.invalid") || tries === OPENING_TRIES) throw error;
    }
    if (find()?.state !== "running") await pause(LOOK_MS, signal);
  }
}

function ignoreUnknown(error: unknown): void {
  if (!isBrigError(error, "sandbox.unknown")) throw error;
}
