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

const programs = ["runner", "runner-files"];
const compile = "clang -std=gnu11 -w -O1 -I/src/common -c";
const link = "clang -static 2>/dev/null -o";

/** Scripts for a container with the sources of both programs below /src and the volume at /toolbox. */
export const buildSound = [
  ...["common", ...programs].map(
    (folder) =>
      `mkdir -p /tmp/objects/${folder}; cd /tmp/objects/${folder}; ls /src/${folder}/*.c | xargs -P 2 -n 4 ${compile}`,
  ),
  "mkdir -p /tmp/sound; cd /tmp/objects",
  ...programs.map((program) => `${link} /tmp/sound/${program} ${program}/*.o common/*.o`),
].join("; ");

/** From a source with a fault, a path below /src, and the objects of all others. */
export function buildFaulty(source) {
  const object = source.replace(/c$/, "o");
  return [
    "rm -rf /tmp/faulty /tmp/with-fault; cp -r /tmp/objects /tmp/with-fault; mkdir /tmp/faulty; cd /tmp/with-fault",
    `${compile} /src/${source} -o ${object}`,
    ...programs.map((program) => `${link} /tmp/faulty/${program} ${program}/*.o common/*.o`),
  ].join("; ");
}

export const installSound = install("/tmp/sound");
export const installFaulty = install("/tmp/faulty");

/** For both of the runtimes. */
function install(directory) {
  return [
    `cd ${directory}; install -m 0111 runner runner-files /toolbox`,
    "install -m 0555 runner /toolbox/runner-gvisor; install -m 0555 runner-files /toolbox/runner-gvisor-files",
  ].join("; ");
}
