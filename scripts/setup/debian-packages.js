import { existsSync, readFileSync } from "node:fs";
import { aptInstall, mustNotInstall } from "./apt.js";

/** What the engine is, and what its parent image is made with where no registry answers. */
const wanted = ["docker.io", "ca-certificates", "mmdebstrap", "debian-archive-keyring"];

/**
 * Fetches Debian's packages of the engine while npm installs and the source is compiled, on a machine that seems to have no engine. Installs
 * nothing: whether that is needed is known when brig is compiled. A failure is of no matter here, since apt fetches what is missing later.
 */
export async function fetchDebianPackages({ signal }) {
  if (!isDebian() || process.getuid?.() !== 0 || mustNotInstall() || mayHaveEngine()) return;
  await aptInstall(["--download-only", ...wanted], { onLine: () => undefined, signal }).catch(
    () => undefined,
  );
}

function isDebian() {
  try {
    return /^ID(?:_LIKE)?=.*\b(?:debian|ubuntu)\b/m.test(readFileSync("/etc/os-release", "utf8"));
  } catch {
    return false;
  }
}

function mayHaveEngine() {
  const { DOCKER_HOST, DOCKER_CONTEXT } = process.env;
  const paths = [
    "/usr/bin/dockerd",
    "/usr/sbin/dockerd",
    "/usr/local/bin/dockerd",
    "/run/docker.sock",
    "/run/podman/podman.sock",
  ];
  return Boolean(DOCKER_HOST || DOCKER_CONTEXT) || paths.some((path) => existsSync(path));
}
