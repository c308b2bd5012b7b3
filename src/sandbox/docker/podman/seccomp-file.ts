import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PodmanSpec } from "./podman-spec.js";

/**
 * Calls `create` with a request that Podman understands. Docker takes a seccomp profile as JSON in the request;
 * Podman takes the path of a file, which it reads while it creates the container, and which only this user can
 * change. So the engine has to be on this machine.
 */
export async function withSeccompFile<T>(
  spec: PodmanSpec,
  create: (spec: PodmanSpec) => Promise<T>,
): Promise<T> {
  const profile = spec.seccomp_profile_path;
  if (!profile?.startsWith("{")) return await create(spec);
  const directory = await mkdtemp(join(tmpdir(), "brig-seccomp-"));
  try {
    const file = join(directory, "profile.json");
    await writeFile(file, profile, { mode: 0o600 });
    return await create({ ...spec, seccomp_profile_path: file });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
