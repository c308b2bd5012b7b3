import { statfs } from "node:fs/promises";
import { formatBytes } from "../../../lib/bytes.js";
import { compareVersions } from "../api-version.js";
import type { Engine, EngineHealth, EngineInfo } from "../engine-types.js";
import { checkAdvisories } from "./advisories.js";
import { type Check, check } from "./check.js";
import { checkCgroups, checkLimits } from "./control-groups.js";

/** With less free space than this, the engine may fail to start containers. */
const scarceBytes = 1024 ** 3;
/** With less free space than this, a large image may fill the disk. */
const lowBytes = 5 * scarceBytes;
const tolerableSkewMs = 5_000;

type DiagnosedEngine = Pick<Engine, "endpoint" | "info" | "health">;

/** Checks whether this engine is fit for brig. Rejects only if the engine cannot be asked. */
export async function diagnose(engine: DiagnosedEngine): Promise<Check[]> {
  const [info, health] = await Promise.all([engine.info(), engine.health()]);
  return [
    checkEngine(engine, info),
    checkVersions(info),
    checkApi(info),
    checkCgroups(info),
    checkLimits(info, health),
    checkSeccomp(info),
    checkMandatoryAccess(info),
    checkUserNamespaces(info),
    checkRuntimes(info),
    checkStorage(info),
    await checkDisk(engine, info),
    checkClock(health),
    ...checkAdvisories(info, health),
  ];
}

function checkEngine({ endpoint }: DiagnosedEngine, { product, version, arch, kernel }: EngineInfo): Check {
  return check({
    id: "engine",
    title: "container engine",
    found: `${product} ${version} on ${arch}, Linux ${kernel}, at ${endpoint}`,
  });
}

function checkVersions({ product, version, components }: EngineInfo): Check {
  const found = Object.entries(components)
    .map(([name, number]) => `${name} ${number}`)
    .join(", ");
  const isOld = product === "docker" && compareVersions(version, "25.0.0") < 0;
  return check(
    { id: "versions", title: "versions", found },
    isOld
      ? {
          status: "warn",
          advice:
            "before Docker 25, file systems mounted below a read-only mount stay writable, so brig refuses " +
            "workspaces that contain any; upgrade to use them",
        }
      : undefined,
  );
}

function checkApi({ apiVersion }: EngineInfo): Check {
  return check({ id: "api", title: "Engine API", found: `brig uses version ${apiVersion}` });
}

function checkSeccomp({ securityOptions }: EngineInfo): Check {
  const option = securityOptions.find((one) => one.startsWith("name=seccomp"));
  return check(
    {
      id: "seccomp",
      title: "system call filter",
      found: option?.replace("name=seccomp,", "") ?? "not supported",
    },
    option === undefined
      ? { status: "fail", advice: "use a kernel and an engine built with seccomp" }
      : undefined,
  );
}

function checkMandatoryAccess({ securityOptions }: EngineInfo): Check {
  const names = ["apparmor", "selinux"].filter((name) =>
    securityOptions.some((one) => one.startsWith(`name=${name}`)),
  );
  return check(
    { id: "apparmor", title: "AppArmor or SELinux", found: names.join(", ") || "none" },
    names.length === 0
      ? {
          status: "warn",
          advice: "brig does not need it, but it adds a layer of protection; enable it in the kernel",
        }
      : undefined,
  );
}

function checkUserNamespaces({ securityOptions }: EngineInfo): Check {
  const names = ["rootless", "userns"].filter((name) => securityOptions.includes(`name=${name}`));
  return check(
    { id: "user-namespaces", title: "user namespaces", found: names.join(", ") || "not used" },
    names.length === 0
      ? {
          status: "warn",
          advice:
            "a process that escapes as root is root on the host; rootless Docker or Podman, or userns-remap, prevents it",
        }
      : undefined,
  );
}

function checkRuntimes({ runtimes, defaultRuntime }: EngineInfo): Check {
  const usable = runtimes.map(({ name }) => name).filter((name) => !name.startsWith("io.containerd."));
  return check({
    id: "runtimes",
    title: "runtimes",
    found: [...(usable.length > 0 ? [usable.join(", ")] : []), `default ${defaultRuntime}`].join("; "),
  });
}

function checkStorage({ storageDriver }: EngineInfo): Check {
  const isOverlay = storageDriver.includes("overlay");
  return check(
    { id: "storage", title: "storage driver", found: storageDriver },
    isOverlay
      ? undefined
      : {
          status: "warn",
          advice:
            "images need more time and space than with overlay2; see the engine's storage driver setting",
        },
  );
}

/** The disk is visible only if the engine runs on this machine. */
async function checkDisk({ endpoint }: DiagnosedEngine, { dockerRootDir }: EngineInfo): Promise<Check> {
  const about = { id: "disk", title: "free disk" };
  const disk = endpoint.startsWith("unix://") ? await statfs(dockerRootDir).catch(() => null) : null;
  if (disk === null) return check({ ...about, found: "not visible from here" });
  const freeBytes = disk.bavail * disk.bsize;
  return check(
    { ...about, found: `${formatBytes(freeBytes)} at ${dockerRootDir}` },
    freeBytes >= lowBytes
      ? undefined
      : {
          status: freeBytes < scarceBytes ? "fail" : "warn",
          advice: "free some space: docker system prune, brig gc",
        },
  );
}

function checkClock({ clockSkewMs }: EngineHealth): Check {
  const isOff = Math.abs(clockSkewMs) > tolerableSkewMs;
  const seconds = (Math.abs(clockSkewMs) / 1000).toFixed(1);
  return check(
    {
      id: "clock",
      title: "clock",
      found: isOff
        ? `the engine is ${seconds} s ${clockSkewMs > 0 ? "ahead" : "behind"}`
        : "the same as on this machine",
    },
    isOff
      ? { status: "warn", advice: "synchronise both clocks; leases and file times depend on them" }
      : undefined,
  );
}
