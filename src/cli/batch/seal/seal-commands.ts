import { join, resolve } from "node:path";
import { type Command, Option } from "commander";
import type { CliContext } from "../../../command/index.js";
import { collect, say, write, writeJson } from "../../../command/index.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import type { VerifyFlags } from "./verify.js";

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
    .addHelpText("after", sealHelp)
    .action(async (run: string, flags: SealFlags) => await seal(resolve(context.cwd, run), flags, context));
}

const sealHelp = `
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

export function defineVerify(command: Command, context: CliContext): void {
  command
    .description("check a run that brig batch seal has signed, and grade it again")
    .argument("<run>", "the folder of the sealed run; nothing in it is changed")
    .argument("[paths...]", "its tasks, as brig batch takes them: their tests grade the attempts again")
    .option("--key <file>", "the public key that must have signed it (default: the one that the seal names)")
    .option(
      "--task <pattern>",
      "grade only attempts at tasks of this name, which may contain * and ?; may be repeated",
      collect,
    )
    .option("--exclude <pattern>", "leave out tasks of this name; may be repeated", collect)
    .option("--json", "print the outcome as JSON")
    .addHelpText("after", verifyHelp)
    .action(async (run: string, paths: string[], flags: VerifyFlags) => {
      const { verifyRun } = await import("./verify.js");
      await verifyRun({ run, paths }, flags, context);
    });
}

const verifyHelp = `
Without --key a good signature says only that nothing was changed since somebody signed it: compare the fingerprint that is printed with
the one that you were told. No agent runs, and no image is pulled: to grade again, the images must be on this machine, or be built here
from the tasks.
Attempts whose tests ran in the agent's container cannot be graded again by anybody: they are counted apart.
Exit status: 0 if everything is as it was signed, 1 if anything else differs or could not be graded again.`;
