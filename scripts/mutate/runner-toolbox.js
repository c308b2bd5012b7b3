import { execFile } from "node:child_process";
import { promisify } from "node:util";

const execute = promisify(execFile);

/**
 * A volume with what brig mounts into sandboxes, in which the runner can be replaced: a new image for each fault would take a minute, and would
 * stay. `toolbox` is the tag of the image whose files it gets.
 */
export async function openToolbox(toolbox) {
  const volume = `brig-mutate-${process.pid}`;
  await execute("docker", ["volume", "create", volume]);
  // The engine copies the files of an image into an empty volume when a container with both is made.
  const mount = `type=volume,source=${volume},target=/.brig`;
  const { stdout } = await execute("docker", ["create", "--mount", mount, toolbox, "/.brig/runner"]);
  await execute("docker", ["rm", stdout.trim()]);
  return {
    volume,
    async remove() {
      // Sandboxes of tests that were interrupted.
      const left = await execute("docker", ["ps", "--all", "--quiet", "--filter", `volume=${volume}`]);
      const ids = left.stdout.split("\n").filter((id) => id !== "");
      if (ids.length > 0) await execute("docker", ["rm", "--force", ...ids]);
      await execute("docker", ["volume", "rm", "--force", volume]);
    },
  };
}

/** Commands for a container with the runner's sources in /src and the volume at /toolbox: compile all of it, and one source with a fault. */
export const compileAll =
  "mkdir -p /tmp/objects; cd /tmp/objects; ls /src/*.c | xargs -P 2 -n 4 clang -std=gnu11 -w -O1 -c";

export function replaceRunner(source) {
  const object = source.replace(/c$/, "o");
  return [
    "cd /tmp/objects",
    `clang -std=gnu11 -w -O1 -c /src/${source} -o /tmp/faulty.o`,
    `clang -static -o /tmp/runner $(ls | grep -vx ${object}) /tmp/faulty.o 2>/dev/null`,
    "install -m 0111 /tmp/runner /toolbox/runner",
    "install -m 0555 /tmp/runner /toolbox/runner-gvisor",
  ].join("; ");
}
