/** Arguments that BuildKit defines in every Dockerfile. */
export const predefinedArguments = [
  "TARGETPLATFORM",
  "TARGETOS",
  "TARGETARCH",
  "TARGETVARIANT",
  "BUILDPLATFORM",
  "BUILDOS",
  "BUILDARCH",
  "BUILDVARIANT",
] as const;

/** The values of these arguments for an engine, which builds for its own platform only. */
export function platformValues(names: readonly string[], arch: string): Record<string, string> {
  const values = { PLATFORM: `linux/${arch}`, OS: "linux", ARCH: arch, VARIANT: "" };
  return Object.fromEntries(
    Object.entries(values)
      .flatMap(([name, value]) => [`TARGET${name}`, `BUILD${name}`].map((full) => [full, value] as const))
      .filter(([name]) => names.includes(name)),
  );
}

/** `$BUILDPLATFORM` and `$TARGETPLATFORM` are the engine's own. */
export function isNativePlatform(written: string): boolean {
  return /^(?:\$(?:BUILD|TARGET)PLATFORM|\$\{(?:BUILD|TARGET)PLATFORM\})$/.test(written);
}

const otherNames: Readonly<Record<string, string>> = { x86_64: "amd64", "x86-64": "amd64", aarch64: "arm64" };

/** Whether a platform such as `linux/arm64/v8`, `arm64` or `linux` is that of an engine with this architecture. */
export function isPlatformOf(platform: string, arch: string): boolean {
  const [first = "", second] = platform.toLowerCase().split("/");
  if (second === undefined && first === "linux") return true;
  const wanted = second ?? first;
  return (second === undefined || first === "linux") && (otherNames[wanted] ?? wanted) === arch;
}
