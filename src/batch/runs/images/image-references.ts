import { BrigError } from "../../../errors.js";
import { SharedWork } from "../../../lib/time/shared-work.js";
import type { Engine, ImageSummary } from "../../../sandbox/index.js";
import type { ImageActivity } from "./image-activity.js";

interface ReferenceOptions {
  engine: Engine;
  /** Other names for images, by the names that tasks and Dockerfiles use. */
  aliases: Readonly<Record<string, string>>;
  /** Whether nothing may be pulled. */
  isOffline: boolean;
  activity: ImageActivity;
}

export interface FoundImage {
  /** The reference, or the alias for it. */
  reference: string;
  image: ImageSummary;
}

/** Finds images by name on the engine, and pulls those that it lacks, each once. */
export class ImageReferences {
  readonly #options: ReferenceOptions;
  readonly #aliases: ReadonlyMap<string, string>;
  readonly #pulls = new SharedWork<ImageSummary>();

  constructor(options: ReferenceOptions) {
    this.#options = options;
    const aliases = Object.entries(options.aliases);
    this.#aliases = new Map(aliases.map(([name, alias]) => [fullName(name), alias]));
  }

  /** The name under which the image is looked for. An alias is not looked up again. */
  nameOf(reference: string): string {
    return this.#aliases.get(fullName(reference)) ?? reference;
  }

  /** Null if it would have to be pulled. */
  async find(reference: string): Promise<FoundImage | null> {
    const name = this.nameOf(reference);
    const image = await this.#options.engine.inspectImage(name);
    return image === null ? null : { reference: name, image };
  }

  /** Errors: `image.missing`, those of the engine. */
  async provide(reference: string, { task, signal }: ProvideOptions): Promise<FoundImage> {
    const found = await this.find(reference);
    if (found !== null) return found;
    const name = this.nameOf(reference);
    if (this.#options.isOffline) throw missingOffline([name]);
    const image = await this.#pulls.join(name, (over) => this.#pull(name, { task, signal: over }), signal);
    return { reference: name, image };
  }

  async #pull(
    name: string,
    { task, signal }: ProvideOptions & { signal: AbortSignal },
  ): Promise<ImageSummary> {
    const { engine, activity } = this.#options;
    const subject = { image: name, task };
    return await activity.run(subject, signal, async () => {
      activity.tell({ ...subject, stage: "pull" });
      const onProgress = (line: string) => activity.tell({ ...subject, stage: "pull", line });
      await engine.pullImage(name, { onProgress, signal });
      const pulled = await engine.inspectImage(name);
      if (pulled !== null) return pulled;
      throw new BrigError(`the engine pulled the image ${name}, but does not have it`, {
        code: "image.missing",
        hint: `try: docker pull ${name}`,
      });
    });
  }
}

export interface ProvideOptions {
  task: string | null;
  signal?: AbortSignal | undefined;
}

export function missingOffline(names: readonly string[]): BrigError {
  const list = names.length === 1 ? `the image ${names[0]} is` : `${names.length} images are`;
  const rest = names.length === 1 ? [] : names.map((name) => `  ${name}`);
  return new BrigError([`${list} not on the engine, and --offline forbids to pull`, ...rest].join("\n"), {
    code: "image.missing",
    hint: "run once without --offline, load them with docker load, or name others under [images.alias] in config.toml",
  });
}

/** Docker's short names in full, so that `python:3.12` and `docker.io/library/python:3.12` are one. */
function fullName(reference: string): string {
  const [first = "", ...rest] = reference.split("/");
  const hasHost = rest.length > 0 && (/[.:]/.test(first) || first === "localhost");
  const host = hasHost ? first.replace(/^index\.docker\.io$/, "docker.io") : "docker.io";
  const path = hasHost ? rest.join("/") : reference;
  const named = host === "docker.io" && !path.includes("/") ? `library/${path}` : path;
  const hasTag = /[@:]/.test(named.slice(named.lastIndexOf("/")));
  return `${host}/${named}${hasTag ? "" : ":latest"}`;
}
