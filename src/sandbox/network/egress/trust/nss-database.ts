import { sandboxFiles } from "../../../files/files.js";
import { isAtOrBelow } from "../../../plan/paths.js";
import type { SandboxPlan } from "../../../plan/plan.js";
import { exec } from "../../../process/run-to-end.js";
import type { CommandContext } from "../../../process/start-command.js";
import { findProgram, searchPath, unlessFailed } from "./image-files.js";
import { AUTHORITY } from "./trust-files.js";

/** The directory in the user's HOME where Chromium and other programs with NSS keep what the user trusts. */
const DATABASE = ".pki/nssdb";
const NICKNAME = "brig";
const TIMEOUT_MS = 10_000;

/**
 * Adds the authority to the user's database of NSS, if the image has NSS's own tool for it: nothing else writes such a database.
 * A home that is a directory of the host is left alone. Where this fails, programs refuse the proxy's certificate, which is said.
 */
export async function trustInNss(
  context: CommandContext,
  {
    imageEnvironment,
    home,
    mounts,
    volumes,
    signal,
  }: Pick<SandboxPlan, "imageEnvironment" | "home" | "mounts" | "volumes"> & {
    signal?: AbortSignal | undefined;
  },
): Promise<void> {
  const directory = `${home}/${DATABASE}`;
  if ([...mounts, ...volumes].some(({ path }) => isAtOrBelow(directory, path))) return;
  const certutil = await findProgram(context, "certutil", searchPath(imageEnvironment));
  if (certutil === null) return;
  const files = sandboxFiles(context);
  const { PATH = "" } = imageEnvironment;
  const run = async (...argv: string[]) =>
    await exec(context, argv, {
      env: { PATH, HOME: home },
      timeoutMs: TIMEOUT_MS,
      signal,
      maxOutputBytes: 4096,
      endsTree: true,
    });
  const database = ["-d", `sql:${directory}`];
  if (
    (await unlessFailed(files.mkdir(directory, { recursive: true, mode: 0o700 }).then(() => true))) === null
  )
    return;
  const isThere = (await unlessFailed(files.stat(`${directory}/cert9.db`))) !== null;
  // After a restart there may be a certificate of the same name from before.
  if (isThere) await run(certutil, "-D", "-n", NICKNAME, ...database);
  else await run(certutil, "-N", "--empty-password", ...database);
  await run(certutil, "-A", "-n", NICKNAME, "-t", "C,,", "-i", AUTHORITY, ...database);
}
