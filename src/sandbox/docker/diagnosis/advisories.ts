import { compareVersions } from "../api-version.js";
import type { EngineHealth, EngineInfo } from "../engine-types.js";
import { type Check, check } from "./check.js";

/** A published vulnerability of an engine or runtime that matters to a sandbox. */
interface Advisory {
  id: string;
  component: "Engine" | "runc";
  title: string;
  /** The first fixed release of each release line that has a fix. */
  fixedIn: string[];
  /** The first fixed build of distribution packages that kept an older version, as the engine reports it. */
  fixedPackages?: string[];
  /** Whether an engine with this setup is affected. Default: always. */
  affects?: (health: EngineHealth) => boolean;
  advice: string;
}

const advisories: Advisory[] = [
  {
    id: "CVE-2024-21626",
    component: "runc",
    title: "a file descriptor leaked into the container opens the host",
    fixedIn: ["1.1.12"],
    fixedPackages: ["1.1.5+ds1-1+deb12u1"],
    advice: "upgrade runc to 1.1.12 or newer",
  },
  {
    id: "CVE-2025-31133",
    component: "runc",
    title:
      "masked paths, console and procfs writes redirected by mount races (also CVE-2025-52565, CVE-2025-52881)",
    fixedIn: ["1.2.8", "1.3.3", "1.4.0-rc.3"],
    advice:
      "in brig an agent cannot choose a container's settings; upgrade runc to 1.3.3 or newer, or use user namespaces",
  },
  {
    id: "CVE-2024-29018",
    component: "Engine",
    title: "internal networks forward DNS to the outside",
    fixedIn: ["23.0.11", "25.0.5", "26.0.0"],
    advice:
      "brig uses the network mode none instead; upgrade the engine to 26.0 or newer if you use internal networks",
  },
  {
    id: "CVE-2026-34040",
    component: "Engine",
    title: "authorization plugins are bypassed by an oversized request",
    fixedIn: ["29.3.1"],
    affects: ({ authorizationPlugins }) => authorizationPlugins.length > 0,
    advice: "upgrade the engine to 29.3.1 or newer",
  },
  {
    id: "CVE-2026-41567",
    component: "Engine",
    title: "a compressed archive runs the container's programs as the host's root",
    fixedIn: ["29.5.1"],
    advice:
      "brig sends only uncompressed archives, before a container starts; do not use docker cp on a sandbox, and upgrade the engine",
  },
  {
    id: "CVE-2026-41568",
    component: "Engine",
    title: "docker cp races create files and redirect mounts on the host (also CVE-2026-42306)",
    fixedIn: ["29.5.1"],
    advice:
      "brig never copies files from or into a running container; do not use docker cp on a sandbox, and upgrade the engine",
  },
];

/** One check for each advisory about a component of this engine. */
export function checkAdvisories(info: EngineInfo, health: EngineHealth): Check[] {
  const known = advisories.filter(({ component }) => component === "runc" || info.product === "docker");
  return known.flatMap((advisory) => {
    const version = info.components[advisory.component];
    return version === undefined ? [] : [checkAdvisory(advisory, { version, health })];
  });
}

function checkAdvisory(
  advisory: Advisory,
  { version, health }: { version: string; health: EngineHealth },
): Check {
  const { id, title, component, affects = () => true, advice } = advisory;
  const about = (found: string) => ({ id, title: id, found: `${component} ${version}: ${found} (${title})` });
  if (!affects(health)) return check(about("not affected"));
  switch (exposure(version, advisory)) {
    case "fixed":
      return check(about("fixed"));
    case "open":
      return check(about("not fixed"), { status: "warn", advice });
    case "unknown":
      return check(about("a distribution's package, which may have the fix"), {
        status: "warn",
        advice: `look up ${id} in your distribution's security tracker; ${advice}`,
      });
  }
}

type Exposure = "fixed" | "open" | "unknown";

/** Whether a version has the fix. A distribution's package may have it despite an older number. */
export function exposure(
  version: string,
  { fixedIn, fixedPackages = [] }: Pick<Advisory, "fixedIn" | "fixedPackages">,
): Exposure {
  const last = newest(fixedIn);
  // A fix counts only within its own release line: 23.0.11 says nothing about 24.0.5. What comes after the last one has it.
  const isFixed = fixedIn.some(
    (fix) =>
      (fix === last || releaseLine(version) === releaseLine(fix)) && compareVersions(version, fix) >= 0,
  );
  if (isFixed || fixedPackages.some((fix) => isSamePackage(version, fix))) return "fixed";
  return /[+~]|-\d|ubuntu|\.(el|fc|amzn)\d/.test(version.replace(/[-~](rc|beta|alpha)[.-]?\d*/, ""))
    ? "unknown"
    : "open";
}

function releaseLine(version: string): string {
  return version.split(/[.+~-]/, 2).join(".");
}

function newest(versions: string[]): string {
  return versions.reduce((a, b) => (compareVersions(a, b) >= 0 ? a : b));
}

/** `1.1.5+ds1-1+deb12u2` is a later build of `1.1.5+ds1-1+deb12u1`. */
function isSamePackage(version: string, fix: string): boolean {
  const [line, build] = splitBuild(version);
  const [fixLine, fixBuild] = splitBuild(fix);
  return line === fixLine && build >= fixBuild;
}

function splitBuild(version: string): [string, number] {
  const [, line = version, build = "0"] = /^(.*u)(\d+)/.exec(version) ?? [];
  return [line, Number(build)];
}
