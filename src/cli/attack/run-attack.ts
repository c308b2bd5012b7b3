import { resolve } from "node:path";
import type { CliContext } from "../../command/index.js";
import { flaggedSettings, isColoured, say, usesColour, write, writeJson } from "../../command/index.js";
import { BrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { writeDurably } from "../../lib/files/durable-file.js";
import { createProgress } from "../../lib/terminal/progress.js";
import type { AttackedPolicy, SandboxSettings, Verdict } from "../../sandbox/index.js";
import { attack, connectEngine, resolveSettings } from "../../sandbox/index.js";
import { readVersion } from "../../version.js";
import { ownFailure } from "../exit-status.js";
import type { AttackFlags } from "./attack-flags.js";
import { attackPage } from "./attack-page.js";
import { attackText, countOf } from "./attack-text.js";

/** Errors: those of opening a sandbox, and `usage.invalid`. */
export async function runAttack(
  flags: AttackFlags & { json?: boolean; verbose?: boolean },
  context: CliContext,
): Promise<void> {
  const settings = await settingsOf(flags, context);
  const { stdout, stderr, signal, environment } = context;
  const engine = await connectEngine({ env: environment });
  const progress = createProgress(stderr, { usesColour: usesColour(context) });
  let attacked: AttackedPolicy[];
  try {
    const onProgress = (step: string) => progress.step(`brig: ${step}`);
    attacked = await attack(engine, { settings, hasControl: flags.control, signal, onProgress });
  } finally {
    progress.close();
  }
  const exitStatus = statusOf(attacked);
  const { product, version, kernel } = await engine.info();
  const about = {
    version: readVersion(),
    engine: `${product} ${version}`,
    kernel,
    hasControl: flags.control,
  };
  if (flags.json === true) await writeJson(stdout, { ...about, exitStatus, attacked });
  else
    await write(
      stdout,
      attackText(attacked, {
        ...about,
        showsAll: flags.verbose === true,
        usesColour: isColoured(stdout, environment),
        columns: stdout.isTTY === true ? stdout.columns : undefined,
      }),
    );
  if (flags.html !== undefined) {
    const file = resolve(context.cwd, flags.html);
    await writePage(file, attackPage(attacked, { ...about, at: new Date() }));
    if (flags.json !== true) await say(stdout, `\nThe page is ${file}\n`);
  }
  context.setExitStatus(exitStatus);
}

async function settingsOf(flags: AttackFlags, context: CliContext): Promise<SandboxSettings[]> {
  const { sandbox: modes = [], containerImage, runtime, network, policy, memory, cpus, pids } = flags;
  const choices = modes.length === 0 ? [undefined] : [...new Set(modes)];
  return await Promise.all(
    choices.map(async (sandbox) => {
      const one = {
        ...(sandbox !== undefined && { sandbox }),
        ...(policy !== undefined && { policy }),
        ...(network !== undefined && { network }),
        ...(containerImage !== undefined && { containerImage }),
        ...(runtime !== undefined && { runtime }),
        ...{ memory, cpus, pids },
      };
      return await resolveSettings(flaggedSettings(one, context));
    }),
  );
}

function statusOf(attacked: readonly AttackedPolicy[]): number {
  const has = (verdict: Verdict) => attacked.some(({ judgements }) => countOf(judgements, verdict) > 0);
  if (has("failed")) return 1;
  return has("unjudged") ? ownFailure : 0;
}

async function writePage(file: string, page: string): Promise<void> {
  try {
    await writeDurably(file, page);
  } catch (cause) {
    throw new BrigError(`cannot write ${JSON.stringify(file)}: ${errnoOf(cause) ?? cause}`, {
      code: "usage.invalid",
      hint: "give --html another file",
      cause,
    });
  }
}
