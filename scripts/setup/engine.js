import { spawn } from "node:child_process";
import { access, mkdir, open, readFile, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { aptInstall, mustNotInstall } from "./apt.js";
import { run } from "./run.js";

const daemon = "dockerd";
const logFile = "/var/log/brig-dockerd.log";
const daemonConfig = "/etc/docker/daemon.json";
const startLimitMs = 60_000;

/** Connects to the container engine. If there is none, installs and starts Docker where that is possible and allowed. */
export async function openEngine(work) {
  const [{ connectEngine }, { readEnvironment }, { readSystem }] = await Promise.all([
    import("../../dist/sandbox/docker/connect.js"),
    import("../../dist/lib/env.js"),
    import("../../dist/sandbox/docker/diagnosis/system.js"),
  ]);
  const env = readEnvironment();
  const connect = () => connectEngine({ env });
  try {
    return await connect();
  } catch (error) {
    const system = await readSystem();
    if (error.code !== "engine.unreachable" || env.dockerHost !== undefined || !isOurs(system)) throw error;
    await install(system, work);
    return await start(connect, { ...work, system });
  }
}

function isOurs({ platform, distributions, isRoot }) {
  const isDebian = platform === "linux" && distributions.some((id) => ["debian", "ubuntu"].includes(id));
  return isDebian && isRoot && !mustNotInstall();
}

async function install({ hasDockerd }, { progress, signal }) {
  if (hasDockerd) return;
  await progress.step("no container engine is here: installing Debian's docker.io with apt", async (onLine) =>
    aptInstall(["docker.io", ...(await companions())], { onLine, signal }),
  );
}

/** If the kernel has AppArmor, dockerd starts no containers without apparmor_parser. */
async function companions() {
  const apparmor = await readFile("/sys/module/apparmor/parameters/enabled", "utf8").catch(() => "N");
  return apparmor.startsWith("Y") ? ["apparmor", "ca-certificates"] : ["ca-certificates"];
}

async function start(connect, { progress, signal, system }) {
  return await progress.step(`starting the container engine (its log: ${logFile})`, async (onLine) => {
    await registerGvisor();
    const state = system.hasSystemd ? await startUnit({ onLine, signal }) : await startDetached();
    return await untilAnswered(connect, { state, signal });
  });
}

async function startUnit({ onLine, signal }) {
  await run(["systemctl", "start", "docker"], { onLine, signal });
  return { hasExited: false };
}

/** In a session of its own, so that ctrl-C does not reach the engine and it outlives this process. */
async function startDetached() {
  await mountCgroups();
  const log = await open(logFile, "w");
  const child = spawn(daemon, [], { detached: true, stdio: ["ignore", log.fd, log.fd] });
  const state = { hasExited: false };
  for (const event of ["error", "exit"]) {
    child.once(event, () => {
      state.hasExited = true;
    });
  }
  child.unref();
  await log.close();
  return state;
}

async function mountCgroups() {
  if (/ - cgroup2? /.test(await readFile("/proc/self/mountinfo", "utf8"))) return;
  await run(["mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup"], { onLine: () => undefined });
}

/** Configures gVisor, if it is installed, for the engine that is about to start. Does not change an existing configuration. */
async function registerGvisor() {
  const path = await firstExisting(["/usr/bin/runsc", "/usr/local/bin/runsc"]);
  if (path === null || (await firstExisting([daemonConfig])) !== null) return;
  // systrap needs neither KVM nor special hardware. gVisor's own network stack fails on some kernels.
  const runtimeArgs = ["--platform=systrap", "--network=none", "--oci-seccomp"];
  await mkdir("/etc/docker", { recursive: true });
  await writeFile(
    daemonConfig,
    `${JSON.stringify({ runtimes: { runsc: { path, runtimeArgs } } }, null, 2)}\n`,
  );
}

async function untilAnswered(connect, { state, signal }) {
  const deadline = Date.now() + startLimitMs;
  while (true) {
    try {
      return await connect();
    } catch (error) {
      if (state.hasExited || Date.now() > deadline) throw await withLog(error);
      await sleep(200, undefined, { signal });
    }
  }
}

async function withLog(error) {
  const log = await readFile(logFile, "utf8").catch(() => "");
  const tail = log.trimEnd().split("\n").slice(-15).join("\n");
  error.message = `the container engine was started but does not answer; the end of ${logFile} is:\n${tail}\n${error.message}`;
  return error;
}

async function firstExisting(paths) {
  for (const path of paths) {
    if (
      await access(path).then(
        () => true,
        () => false,
      )
    ) {
      return path;
    }
  }
  return null;
}
