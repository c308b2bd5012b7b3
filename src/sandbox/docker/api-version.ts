/** The oldest API version that brig works with: private cgroup namespaces by name, Docker 20.10. */
export const oldestApi = "1.41";
/** brig uses this API version with newer engines. */
const newestApi = "1.44";

/**
 * The API version to use with an engine that supports `least` to `newest`; null if the engine is too old. The
 * fixed maximum keeps new engines from changing the meaning of a request.
 */
export function agreeOnApi(newest: string, least: string | undefined): string | null {
  if (compareVersions(newest, oldestApi) < 0) return null;
  const agreed = compareVersions(newest, newestApi) < 0 ? newest : newestApi;
  return least !== undefined && compareVersions(agreed, least) < 0 ? least : agreed;
}

/**
 * Compares dotted versions by number, at most four parts, ignoring what follows the digits
 * (`20.10.24+dfsg1`). A pre-release (`1.4.0-rc.2`) comes before its release. Negative: a is older.
 */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [parse(a), parse(b)];
  for (let part = 0; part < 4; part += 1) {
    const difference = (left.parts[part] ?? 0) - (right.parts[part] ?? 0);
    if (difference !== 0) return difference;
  }
  return left.preRelease - right.preRelease;
}

function parse(version: string): { parts: number[]; preRelease: number } {
  const numbers = /^v?(\d+(?:\.\d+){0,3})/.exec(version.trim())?.[1] ?? "0";
  const candidate = /[-~](?:rc|beta|alpha)[.-]?(\d+)/.exec(version)?.[1];
  return {
    parts: numbers.split(".").map(Number),
    preRelease: candidate === undefined ? Number.MAX_SAFE_INTEGER : Number(candidate),
  };
}
