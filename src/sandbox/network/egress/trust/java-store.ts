import { posix } from "node:path";
import { statFile } from "../../../files/files.js";
import type { CommandContext } from "../../../process/start-command.js";
import { findProgram, readIfThere, searchPath, unlessFailed } from "./image-files.js";
import { readKeyStore } from "./key-store.js";

/** The files in which a JVM keeps the authorities that it trusts, from the directory of its `java`; Java 8 has them in `jre`. */
const STORES = ["../lib/security/jssecacerts", "../lib/security/cacerts", "../jre/lib/security/cacerts"];
const STORE_MAX_BYTES = 8 * 1024 * 1024;
/** The most links that the kernel follows. */
const MAX_LINKS = 40;

/** The path of the image's `java`, links not followed; null for an image without a JVM. */
export async function findJava(
  context: CommandContext,
  variables: Readonly<Record<string, string>>,
): Promise<string | null> {
  const { JAVA_HOME: home = "" } = variables;
  const own = home.startsWith("/") ? [posix.join(home, "bin")] : [];
  return await findProgram(context, "java", [...own, ...searchPath(variables)]);
}

/** The authorities, in DER, that the JVM trusts. Null if they are kept in another form, or not where JVMs have them. */
export async function authoritiesOfJava(context: CommandContext, java: string): Promise<Buffer[] | null> {
  const directory = posix.dirname(await followed(context, java));
  for (const store of STORES) {
    // Not simplified: what is before `..` may be a link.
    const path = `${directory}/${store}`;
    const file = await readIfThere(context, path, { maxBytes: STORE_MAX_BYTES });
    const certificates = file && readKeyStore(file);
    if (certificates?.length) return certificates;
  }
  return null;
}

async function followed(context: CommandContext, path: string): Promise<string> {
  let at = path;
  for (let links = 0; links < MAX_LINKS; links++) {
    const target = (await unlessFailed(statFile(context, at, { followSymlinks: false })))?.linkTarget;
    if (!target) return at;
    at = target.startsWith("/") ? target : `${posix.dirname(at)}/${target}`;
  }
  return path;
}
