/** The security option of an engine that runs without root. The engine may add fields behind a comma. */
export const ROOTLESS = "name=rootless";

/** A rootless engine runs as root of its own user namespace, and may not change kernel settings. */
export function isRootless({ securityOptions }: { securityOptions: readonly string[] }): boolean {
  return securityOptions.some((option) => option.split(",").includes(ROOTLESS));
}
