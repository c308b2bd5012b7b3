import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Proof } from "../../sandbox/index.js";

/** Proof of the agent's container, in the folder of an attempt. */
export const AGENT_PROOF = "proof.json";
/** Proof of the container that the tests ran in, in the folder of a step. */
export const VERIFIER_PROOF = "verifier-proof.json";

/** Writes what the kernel said about the policy of a container, before anything ran in it. */
export async function writeProof(file: { folder: string; name: string }, proof: Proof): Promise<void> {
  const text = `${JSON.stringify({ schemaVersion: 1, ...proof }, null, 2)}\n`;
  await writeFile(join(file.folder, file.name), text, { mode: 0o600 });
}
