import type { EngineHealth, EngineInfo } from "../engine-types.js";
import { isRootless } from "../rootless.js";
import { type Check, check } from "./check.js";

/** Driver that a rootless Docker reports if it cannot set limits, because it does not run as a service of systemd, which would set them. */
const NO_DRIVER = "none";

/** Whether nothing can limit the engine's containers, whatever the kernel can do for root. */
const limitsNothing = (info: EngineInfo) =>
  isRootless(info) && (info.cgroupVersion === "1" || info.cgroupDriver === NO_DRIVER);

export function checkCgroups(info: EngineInfo): Check {
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

export function checkLimits(info: EngineInfo, { limits }: EngineHealth): Check {
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
