import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ContainerBody } from "../engine-types.js";

const prefix = "seccomp=";

/**
 * Calls `create` with a request that Podman understands. Docker takes a seccomp profile as JSON in the request;
 * Podman takes the path of a file, which it reads while it creates the container, and which only this user can
 * change. So the engine has to be on this machine.
 */
export async function withSeccompFile<T>(
  body: ContainerBody,
  create: (body: ContainerBody) => Promise<T>,
): Promise<T> {
  const options = body.HostConfig.SecurityOpt;
  const profile = options.find(isInlineProfile);
  if (profile === undefined) return await create(body);
  const directory = await mkdtemp(join(tmpdir(), "brig-seccomp-"));
  try {
    const file = join(directory, "profile.json");
    await writeFile(file, profile.slice(prefix.length), { mode: 0o600 });
    const SecurityOpt = options.map((one) => (one === profile ? `${prefix}${file}` : one));
    return await create({ ...body, HostConfig: { ...body.HostConfig, SecurityOpt } });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function isInlineProfile(option: string): boolean {
  return option.startsWith(`${prefix}{`);
}
