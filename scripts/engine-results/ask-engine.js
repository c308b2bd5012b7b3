import { execFile } from "node:child_process";
import { request } from "node:http";
import { promisify } from "node:util";

const run = promisify(execFile);

/** How long an engine may take to say something about itself. */
const ANSWER_MS = 60_000;

/**
 * What an engine says about itself: product and version, runtime, kernel, version of its control groups, processor. The engine is the one
 * that DOCKER_HOST names by its socket; the runtime is its default, or the one that BRIG_TEST_RUNTIME names.
 */
export async function askEngine({ DOCKER_HOST, BRIG_TEST_RUNTIME }) {
  const socketPath = (DOCKER_HOST || "unix:///var/run/docker.sock").replace(/^unix:\/\//, "");
  const [version, info] = await Promise.all(["/version", "/info"].map((path) => ask(socketPath, path)));
  const isPodman = version.Components.some(({ Name }) => /podman/i.test(Name));
  return {
    engine: `${isPodman ? "Podman" : "Docker"} ${upstream(version.Version)}`,
    runtime: BRIG_TEST_RUNTIME
      ? await describeProgram(info.Runtimes[BRIG_TEST_RUNTIME].path)
      : defaultRuntime(info, version),
    kernel: upstream(info.KernelVersion),
    cgroupVersion: info.CgroupVersion,
    rootless: info.SecurityOptions.some((option) => /rootless/.test(option)),
    architecture: version.Arch,
  };
}

/** Without what a distribution or a machine adds: 20.10.24 of 20.10.24+dfsg1. */
function upstream(version) {
  return /[0-9]+(?:\.[0-9]+)+/.exec(version)?.[0] ?? version;
}

/** Podman's may be a script that starts the runtime proper, which then says what it is. */
export function defaultRuntime({ DefaultRuntime }, { Components }) {
  const name = DefaultRuntime.split("/").at(-1);
  const isIt = ({ Name }) =>
    [name, `(${name})`, `(${DefaultRuntime})`].some((ending) => Name.endsWith(ending));
  const part = Components.find(isIt);
  if (part === undefined) return name;
  return `${/^(\S+) version /.exec(part.Version)?.[1] ?? name} ${upstream(part.Version)}`;
}

/** `runsc version release-20240729.0` is the first line of gVisor's answer, and `0.0~20240729.0` what Debian makes of it. */
async function describeProgram(path) {
  const { stdout } = await run(path, ["--version"], { timeout: ANSWER_MS });
  const [, name, version] = /^(\S+) version (?:release-|0\.0~)?([0-9.]+)/.exec(stdout) ?? [];
  if (name === undefined) throw new Error(`${path} does not say which version it is`);
  return `${name === "runsc" ? "gVisor" : name} ${version}`;
}

async function ask(socketPath, path) {
  const signal = AbortSignal.timeout(ANSWER_MS);
  return await new Promise((resolve, reject) => {
    request({ socketPath, path, signal }, async (response) => {
      const chunks = [];
      for await (const chunk of response) chunks.push(chunk);
      if (response.statusCode === 200) resolve(JSON.parse(Buffer.concat(chunks).toString("utf8")));
      else reject(new Error(`${path}: the engine answers with status ${response.statusCode}`));
    })
      .on("error", reject)
      .end();
  });
}
