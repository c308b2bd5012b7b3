import { run } from "./run.js";

/** Installs Debian packages on this machine, as root. Fetches package lists only if needed. */
export async function aptInstall(packages, { onLine, signal }) {
  const apt = (...argv) =>
    run(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", ...argv], { onLine, signal });
  const install = () => apt("install", "-y", "--no-install-recommends", ...packages);
  try {
    await install();
  } catch {
    signal?.throwIfAborted();
    await apt("update");
    await install();
  }
}

export function mustNotInstall() {
  return (
    process.env.BRIG_NO_INSTALL !== undefined && !["", "0", "false"].includes(process.env.BRIG_NO_INSTALL)
  );
}
