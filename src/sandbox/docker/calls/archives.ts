import { BrigError } from "../../../errors.js";
import { array, number, object, read, readOrNull, string } from "../../../lib/json/json-shape.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { type Client, nullIfMissing, uploading } from "../client.js";
import type { ContainerChange, Engine, StatedPath } from "../engine-types.js";
import { readAtMost, type Transport } from "../transport.js";
import { pathOf } from "./containers.js";

/** Files of containers, which the engine copies itself: no program of the container takes part. */
export function archiveCalls({ call }: Client) {
  return {
    async putArchive(id, path, tar) {
      await call("copy files into the container", (api, limit) =>
        uploading(tar, () =>
          api.json({ method: "PUT", path: `${pathOf(id)}/archive`, query: { path }, upload: tar }, limit),
        ),
      );
    },

    async readArchive(id, path, { signal } = {}) {
      const request = { method: "GET", path: `${pathOf(id)}/archive`, query: { path } } as const;
      return await call(
        "copy files out of the container",
        (api, limit) => nullIfNoPath(api.stream(request, limit), { id, api, limit }),
        { signal },
      );
    },

    async statPath(id, path, { signal } = {}) {
      const request = { method: "HEAD", path: `${pathOf(id)}/archive`, query: { path } } as const;
      const headers = await call(
        "look at a path in the container",
        (api, limit) => nullIfNoPath(api.headers(request, limit), { id, api, limit }),
        { signal },
      );
      return parseStat(headers?.["x-docker-container-path-stat"]);
    },

    async containerChanges(id, { signal } = {}) {
      const request = { method: "GET", path: `${pathOf(id)}/changes` } as const;
      const doing = "ask what the container has changed";
      const list = async (api: Transport, limit: AbortSignal) => {
        const reply = await readAtMost(await api.stream(request, limit), CHANGES_MAX_BYTES);
        if (reply === null)
          throw new BrigError(`cannot ${doing}: the answer has more than ${CHANGES_MAX_BYTES} bytes`, {
            code: "engine.failed",
            errno: "EFBIG",
          });
        const text = reply.toString().trim();
        return read(changes, text === "" ? [] : (JSON.parse(text) ?? []));
      };
      return (await call(doing, list, { signal })).map(({ Path, Kind }) => ({
        path: Path,
        kind: kinds[Kind] ?? "changed",
      }));
    },
  } satisfies Partial<Engine>;
}

/**
 * Null if the container does not have the path. The engine answers 404 as well if it does not have the container any more, which
 * is an error: its files would look as if they had never been there.
 */
async function nullIfNoPath<T>(
  reply: Promise<T>,
  { id, api, limit }: { id: string; api: Transport; limit: AbortSignal },
): Promise<T | null> {
  const found = await nullIfMissing(reply);
  if (found !== null) return found;
  const container = await nullIfMissing(api.json({ method: "GET", path: `${pathOf(id)}/json` }, limit));
  if (container !== null) return null;
  throw new BrigError(`the files of the container ${id.slice(0, 12)} cannot be read: it was removed`, {
    code: "engine.failed",
  });
}

/** Some hundred thousand paths. Programs in a container can make any number, and paths of 4 KiB. */
const CHANGES_MAX_BYTES = 64 * 1024 * 1024;

const changes = array(object({ Path: string, Kind: number }));

const kinds: readonly ContainerChange["kind"][] = ["changed", "added", "deleted"];

const stat = object({ mode: number, mtime: string });

/** The engine writes modes as Go does: bits of its own for everything but the permissions. */
const GoMode = { directory: 2 ** 31, setuid: 2 ** 23, setgid: 2 ** 22, sticky: 2 ** 20 };

/** Null if the header is missing or is not in the engine's format. */
function parseStat(header: string | string[] | undefined): StatedPath | null {
  if (typeof header !== "string") return null;
  const found = readOrNull(stat, parseJson(Buffer.from(header, "base64").toString()));
  const modifiedMs = found === null ? null : parseNanoseconds(found.mtime);
  if (found === null || modifiedMs === null) return null;
  const has = (bit: number) => Math.floor(found.mode / bit) % 2 === 1;
  const special =
    (has(GoMode.setuid) ? 0o4000 : 0) | (has(GoMode.setgid) ? 0o2000 : 0) | (has(GoMode.sticky) ? 0o1000 : 0);
  return { isDirectory: has(GoMode.directory), mode: (found.mode & 0o777) | special, modifiedMs };
}

/** Milliseconds since 1970, which a `Date` would round. The same arithmetic as for times from the runner, so that equal times are equal. */
function parseNanoseconds(time: string): number | null {
  const [, whole = "", fraction = "", zone = ""] =
    /^([^.]+?)(?:\.([0-9]{1,9}))?(Z|[+-][0-9:]{5})$/.exec(time) ?? [];
  const atMs = Date.parse(`${whole}${zone}`);
  if (Number.isNaN(atMs)) return null;
  return Number(BigInt(atMs) * 1_000_000n + BigInt(fraction.padEnd(9, "0"))) / 1e6;
}
