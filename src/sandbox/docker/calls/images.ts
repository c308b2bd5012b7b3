import type { Readable } from "node:stream";
import { BrigError } from "../../../errors.js";
import {
  anything,
  array,
  nullish,
  number,
  object,
  read,
  record,
  type Shaped,
  string,
} from "../../../lib/json/json-shape.js";
import { type Client, nullIfMissing, uploading } from "../client.js";
import { errnoIn, streamedFailure } from "../engine-failure.js";
import type { BuildOptions, Engine, ImageSummary, PullProgress } from "../engine-types.js";
import { checkImageName } from "./image-name.js";
import { progressLines } from "./progress-lines.js";

/** The number of lines of a build's log that its error shows. */
const shownLogLines = 20;

export function imageCalls({ call }: Client) {
  async function inspectImage(ref: string): Promise<ImageSummary | null> {
    return await call(`inspect the image ${ref}`, async (api, limit) => {
      const reply = await nullIfMissing(api.json({ method: "GET", path: `${pathOf(ref)}/json` }, limit));
      return reply === null ? null : asSummary(read(image, reply));
    });
  }

  return {
    inspectImage,

    async listImages(labels) {
      const query = { filters: { label: labels } };
      const reply = await call("list images", (api, limit) =>
        api.json({ method: "GET", path: "/images/json", query }, limit),
      );
      const found = await Promise.all(read(imageIds, reply).map(({ Id }) => inspectImage(Id)));
      return found.filter((one) => one !== null);
    },

    async imageHistory(ref) {
      const reply = await call(`ask for the layers of the image ${ref}`, (api, limit) =>
        api.json({ method: "GET", path: `${pathOf(ref)}/history` }, limit),
      );
      return read(layers, reply).map(({ Created, CreatedBy, Size }) => ({
        createdAt: Created,
        createdBy: CreatedBy ?? "",
        bytes: Size,
      }));
    },

    async buildImage(context, options) {
      await call(
        `build the image ${options.tag}`,
        (api, signal) =>
          uploading(context, async () => {
            const query = buildQuery(options);
            const request = { method: "POST", path: "/build", query, upload: context } as const;
            await followBuild(await api.stream(request, signal), options);
          }),
        { signal: options.signal, limitMs: null },
      );
    },

    async importImage(tar, tag) {
      const doing = `import the image ${tag}`;
      // Podman does not read `tag` here, and Docker lets it replace the one in `repo`.
      const query = { fromSrc: "-", repo: tag, tag: splitTag(tag).tag };
      await call(
        doing,
        (api, signal) =>
          uploading(tar, async () => {
            const request = { method: "POST", path: "/images/create", query, upload: tar } as const;
            await follow(await api.stream(request, signal), { doing });
          }),
        { limitMs: null },
      );
    },

    async pullImage(ref, { onProgress, signal } = {}) {
      const doing = `pull the image ${ref}`;
      const { repo, tag } = splitTag(ref);
      const query = { fromImage: repo, tag };
      await call(
        doing,
        async (api, limit) => {
          const reply = await api.stream({ method: "POST", path: "/images/create", query }, limit);
          await follow(reply, { doing, onProgress });
        },
        { signal, limitMs: null },
      );
    },

    async tagImage(ref, tag) {
      await call(`tag the image ${ref} as ${tag}`, (api, limit) =>
        api.json({ method: "POST", path: `${pathOf(ref)}/tag`, query: splitTag(tag) }, limit),
      );
    },

    async removeImage(ref) {
      await call(`remove the image ${ref}`, (api, limit) =>
        nullIfMissing(api.json({ method: "DELETE", path: pathOf(ref) }, limit)),
      );
    },
  } satisfies Partial<Engine>;
}

/** Slashes stay unencoded in the path; the check refuses everything else that would change its meaning. */
function pathOf(ref: string): string {
  checkImageName(ref);
  return `/images/${ref}`;
}

const imageIds = array(object({ Id: string }));

const layers = array(object({ Created: number, CreatedBy: nullish(string), Size: number }));

const image = object({
  Id: string,
  RepoTags: nullish(array(string)),
  Size: number,
  Created: nullish(string),
  Metadata: nullish(object({ LastTagTime: nullish(string) })),
  Architecture: string,
  Config: nullish(
    object({
      Labels: nullish(record(string)),
      Env: nullish(array(string)),
      Volumes: nullish(record(anything)),
      User: nullish(string),
      WorkingDir: nullish(string),
    }),
  ),
});

function asSummary(reply: Shaped<typeof image>): ImageSummary {
  return {
    id: reply.Id,
    tags: reply.RepoTags ?? [],
    sizeBytes: reply.Size,
    createdAt: new Date(reply.Created || 0),
    lastTaggedAt: tagTime(reply.Metadata?.LastTagTime),
    labels: reply.Config?.Labels ?? {},
    arch: reply.Architecture,
    env: reply.Config?.Env ?? [],
    volumes: Object.keys(reply.Config?.Volumes ?? {}),
    user: reply.Config?.User ?? "",
    workingDir: reply.Config?.WorkingDir ?? "",
  };
}

/** For images that never got a name here, Docker says the year 1. */
function tagTime(text: string | null | undefined): Date | null {
  const time = new Date(text ?? "");
  return time.getTime() > 0 ? time : null;
}

function buildQuery({
  tag,
  dockerfile,
  buildArgs,
  target,
  labels,
  usesBuildKit = false,
  hasNetwork = true,
}: BuildOptions): Record<string, unknown> {
  return {
    t: tag,
    dockerfile: dockerfile ?? "Dockerfile",
    rm: true,
    forcerm: true,
    ...(buildArgs === undefined ? {} : { buildargs: buildArgs }),
    ...(target === undefined ? {} : { target }),
    ...(labels === undefined ? {} : { labels }),
    ...(usesBuildKit ? { version: "2" } : {}),
    ...(hasNetwork ? {} : { networkmode: "none" }),
  };
}

async function follow(
  reply: Readable,
  { doing, onProgress }: { doing: string; onProgress?: PullProgress | undefined },
): Promise<void> {
  for await (const line of progressLines(reply)) {
    if (line.kind === "error") throw streamedFailure(line.text, doing);
    onProgress?.(line.text, line.pulled);
  }
}

async function followBuild(reply: Readable, { tag, onProgress }: BuildOptions): Promise<void> {
  const log: string[] = [];
  for await (const line of progressLines(reply)) {
    if (line.kind === "error") throw buildFailure(tag, { log, words: line.text });
    log.push(line.text);
    if (log.length > shownLogLines) log.shift();
    onProgress?.(line.text);
  }
}

function buildFailure(tag: string, { log, words }: { log: string[]; words: string }): BrigError {
  return new BrigError([`building the image ${tag} failed: ${words}`, ...log].join("\n  "), {
    code: "image.build-failed",
    hint: "the last lines of the build log are above; a build needs the network to install packages",
    errno: errnoIn(words),
  });
}

/** Splits `registry:5000/name:tag` and `name@sha256:…`; the API takes the parts separately. */
function splitTag(ref: string): { repo: string; tag: string } {
  const at = ref.indexOf("@");
  const colon = at === -1 ? ref.lastIndexOf(":") : at;
  if (colon === -1 || ref.includes("/", colon)) return { repo: ref, tag: "latest" };
  return { repo: ref.slice(0, colon), tag: ref.slice(colon + 1) };
}
