import { formatBytes } from "../../../lib/bytes.js";
import { compareVersions } from "../api-version.js";
import { freeSpace, isThisMachine } from "../disk/this-machine.js";
import type { Engine, EngineHealth, EngineInfo } from "../engine-types.js";
import { isRootless } from "../rootless.js";
import { checkAdvisories } from "./advisories.js";
import { type Check, check } from "./check.js";

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

function checkEngine({ endpoint }: DiagnosedEngine, info: EngineInfo): Check {
  const { product, version, arch, kernel } = info;
  const of = isDockerDesktop(info) ? " of Docker Desktop" : "";
  return check({
    id: "engine",
    title: "container engine",
    found: `${product} ${version}${of} on ${arch}, Linux ${kernel}, at ${endpoint}`,
  });
}

/** It runs containers in a virtual machine of its own, on Linux too. */
function isDockerDesktop({ operatingSystem }: EngineInfo): boolean {
  return operatingSystem === "Docker Desktop";
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

function checkUserNamespaces(info: EngineInfo): Check {
  const { securityOptions } = info;
  const names = ["rootless", "userns"].filter((name) => securityOptions.includes(`name=${name}`));
  return check(
    { id: "user-namespaces", title: "user namespaces", found: names.join(", ") || "not used" },
    names.length === 0
      ? {
          status: "warn",
          advice: isDockerDesktop(info)
            ? "a process that escapes as root is root in Docker Desktop's virtual machine, and reaches what that shares with this machine"
            : "a process that escapes as root is root on the host; rootless Docker or Podman, or userns-remap, prevents it",
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

/** The disk is visible only if the engine runs on this machine, and not in a virtual one. */
async function checkDisk({ endpoint }: DiagnosedEngine, info: EngineInfo): Promise<Check> {
  const about = { id: "disk", title: "free disk" };
  const space = (await isThisMachine(endpoint, info)) ? await freeSpace(info.dockerRootDir) : null;
  if (space === null) return check({ ...about, found: "not visible from here" });
  return check(
    { ...about, found: `${formatBytes(space.bytes)} at ${info.dockerRootDir}` },
    space.bytes >= lowBytes
      ? undefined
      : {
          status: space.bytes < scarceBytes ? "fail" : "warn",
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

/** Driver that a rootless Docker reports if it cannot set limits, because it does not run as a service of systemd, which would set them. */
const NO_DRIVER = "none";

/** Whether nothing can limit the engine's containers, whatever the kernel can do for root. */
const limitsNothing = (info: EngineInfo) =>
  isRootless(info) && (info.cgroupVersion === "1" || info.cgroupDriver === NO_DRIVER);

function checkCgroups(info: EngineInfo): Check {
  const { cgroupVersion, cgroupDriver } = info;
  const about = {
    id: "cgroups",
    title: "control groups",
    found: `version ${cgroupVersion}, driver ${cgroupDriver}`,
  };
  if (cgroupVersion === "2")
    return check(
      about,
      limitsNothing(info)
        ? {
            status: "fail",
            advice:
              "a rootless engine enforces limits only as a service of its user's systemd, so brig runs nothing here; start it " +
              "with systemctl --user start docker, or use an engine that runs as root",
          }
        : undefined,
    );
  if (limitsNothing(info))
    return check(about, {
      status: "fail",
      advice:
        "a rootless engine enforces no limits with version 1, so brig runs nothing there; to get version 2, boot with " +
        "systemd.unified_cgroup_hierarchy=1, or use an engine that runs as root",
    });
  return check(about, {
    status: "warn",
    advice: "the limits are enforced; to get version 2, boot with systemd.unified_cgroup_hierarchy=1",
  });
}

function checkLimits(info: EngineInfo, { limits }: EngineHealth): Check {
  const names = Object.entries(limits);
  const missing = names.filter(([, isThere]) => !isThere).map(([name]) => name);
  const about = { id: "limits", title: "limits that the kernel enforces" };
  const list = (chosen: string[]) => (chosen.length === 0 ? "none" : chosen.join(", "));
  const found = list(names.filter(([, isThere]) => isThere).map(([name]) => name));
  if (missing.length === 0) return check({ ...about, found });
  // A sandbox opens even if the kernel does not count swap, and its proof says so.
  const isVital = missing.some((name) => name !== "swap");
  return check(
    { ...about, found: `${found}; missing: ${list(missing)}` },
    { status: isVital ? "fail" : "warn", advice: isVital ? adviceFor(info) : COUNT_SWAP },
  );
}

const COUNT_SWAP = "boot the kernel with swapaccount=1";

function adviceFor(info: EngineInfo): string {
  if (limitsNothing(info)) return "it is this engine that cannot set them: see control groups";
  if (isRootless(info))
    return (
      "let systemd give users these controllers: put Delegate=cpu cpuset io memory pids below [Service] in " +
      "/etc/systemd/system/user@.service.d/delegate.conf, and start the machine again"
    );
  return "boot the kernel with cgroup_enable=memory swapaccount=1, or delegate these controllers to the engine";
}
