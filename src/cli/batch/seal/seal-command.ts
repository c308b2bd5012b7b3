import { join, resolve } from "node:path";
import { type Command, Option } from "commander";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import type { CliContext } from "../../context.js";
import { say, write, writeJson } from "../../render.js";

interface SealFlags {
  key?: string;
  newKey?: string;
  json?: boolean;
}

export function defineSeal(command: Command, context: CliContext): void {
  command
    .description("sign a run, so that others can check it with brig batch verify")
    .argument("<run>", "the folder of the run, which gets seal.json")
    .option(
      "--key <file>",
      "a private Ed25519 key in PEM (default: seal-key.pem in $BRIG_HOME, made when it is missing)",
    )
    .addOption(
      new Option(
        "--new-key <file>",
        "make a key, sign with it, and write FILE.pub for those who check",
      ).conflicts("key"),
    )
    .option("--json", "print what was signed as JSON")
    .addHelpText("after", help)
    .action(async (run: string, flags: SealFlags) => await seal(resolve(context.cwd, run), flags, context));
}

const help = `
Signed are the checksums of all files of the run, its settings and tasks, and the reward, the images and the policy of each attempt.
Give others the folder, and by another way the public key or its fingerprint.`;

async function seal(folder: string, flags: SealFlags, context: CliContext): Promise<void> {
  const { stdout, stderr, signal } = context;
  const { sealRun } = await import("../../../batch/index.js");
  const key = await chosenKey(flags, context);
  const sealed = await sealRun(folder, { key, signal, now: () => new Date() });
  if (flags.json === true) return await writeJson(stdout, sealed);
  await write(stdout, `${sealed.file}\n`);
  await say(stderr, `${sealed.files} files of ${sealed.attempts} attempts are signed by ${sealed.keyId}\n`);
}

async function chosenKey({ key, newKey }: SealFlags, { cwd, environment }: CliContext) {
  const { newKey: makeKey, readPrivateKey } = await import("../../../batch/index.js");
  const { stat } = await import("node:fs/promises");
  if (newKey !== undefined) return await makeKey(resolve(cwd, newKey));
  if (key !== undefined) return await readPrivateKey(resolve(cwd, key));
  const file = join(environment.brigHome, "seal-key.pem");
  if ((await stat(file).catch(() => null)) !== null) return await readPrivateKey(file);
  await makeDirectory(environment.brigHome, { mode: 0o700 });
  return await makeKey(file);
}
