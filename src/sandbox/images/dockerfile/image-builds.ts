import { isUtf8 } from "node:buffer";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { BrigError, isBrigError } from "../../../errors.js";
import { Gate } from "../../../lib/time/gate.js";
import { SharedWork } from "../../../lib/time/shared-work.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import type { PulledBytes } from "../../docker/calls/pull-bytes.js";
import type { Engine, ImageSummary, PullProgress } from "../../docker/engine-types.js";
import { withLock } from "../lock.js";
import { finishedLabels, unfinishedInstruction } from "../unfinished.js";
import { type BuildPlan, type ContextFiles, type ImageBuild, packContext, planBuild } from "./build-plan.js";
import type { BuiltFor } from "./built-for.js";
import { buildsHold, builtImageLabels, ImageHolds } from "./built-image-store.js";
import type { ContextLimits } from "./context-files.js";
import { addBelowStages } from "./dockerfile.js";

interface BuildsOptions {
  engine: Engine;
  references: ImageReferences;
  activity: ImageActivity;
  builtFor: BuiltFor;
  /** Whether the commands of a build have no network. */
  isOffline: boolean;
  /** Marks images that a failed build leaves behind as belonging to this `$BRIG_HOME`. Undefined for no mark. */
  brigHome?: string | undefined;
  contextLimits?: ContextLimits | undefined;
  /** Called after each build. */
  onBuilt(signal: AbortSignal): Promise<void>;
}

/** The contents of all files of a context are read for it. */
const plannedAtOnce = 4;

/** Number of lines from the end of a build's log that the error of one that takes too long contains. */
const shownLogLines = 20;

/** An image that no brig removes to make room for others, until this is disposed of. */
export interface ReadyImage extends Disposable {
  /** `sha256:…`, the same as long as the content is. */
  id: string;
  /** A name to start containers from. */
  reference: string;
}

/** Builds images from Dockerfiles, each content once. */
export class ImageBuilds {
  readonly #options: BuildsOptions;
  readonly #planning = new Gate();
  readonly #plans = new SharedWork<BuildPlan>();
  readonly #lookups = new SharedWork<ImageSummary | null>();
  readonly #builds = new SharedWork<ImageSummary>();
  readonly #holds = new ImageHolds();
  /** The tags of the images that were asked for before, so that one run uses one image of each. */
  readonly #tags = new Map<string, string>();
  #hasFailed = false;

  constructor(options: BuildsOptions) {
    this.#options = options;
  }

  /** Whether a build has begun and not come to its end. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  async ready(image: ImageBuild, { task, signal }: ProvideOptions): Promise<ReadyImage> {
    const key = JSON.stringify([
      image.context,
      image.dockerfile,
      image.target,
      Object.entries(image.buildArgs).toSorted(),
    ]);
    const known = this.#tags.get(key);
    const found = known === undefined ? null : await this.#existing(known, { task, signal });
    if (found !== null) return found;

    const plan = await this.#plans.join(key, (over) => this.#plan(image, { task, signal: over }), signal);
    this.#tags.set(key, plan.tag);
    return (
      (await this.#existing(plan.tag, { task, signal })) ??
      (await this.#holding(plan.tag, async () => {
        const { timeoutSec } = image;
        const build = (over: AbortSignal) => this.#buildOnce(plan, { task, timeoutSec, signal: over });
        return await this.#builds.join(plan.tag, build, signal);
      }))
    );
  }

  /** Null if the image has to be built. */
  async #existing(tag: string, { task, signal }: ProvideOptions): Promise<ReadyImage | null> {
    const { activity } = this.#options;
    const onWait = () => activity.tell({ image: tag, task, stage: "wait" });
    const look = (over: AbortSignal) => withLock(tag, () => this.#inspect(tag), { onWait, signal: over });
    return await this.#holding(tag, async () => await this.#lookups.join(tag, look, signal));
  }

  /** Holds the image while it is looked for or built and, if there is one, until the result is disposed of. */
  async #holding<Found extends ImageSummary | null>(
    tag: string,
    find: () => Promise<Found>,
  ): Promise<ReadyImage | Extract<Found, null>> {
    const hold = await this.#holds.take(tag);
    let isNeeded = false;
    try {
      const image = await find();
      if (image === null) return null as Extract<Found, null>;
      isNeeded = true;
      return { id: image.id, reference: tag, [Symbol.dispose]: hold[Symbol.dispose] };
    } finally {
      if (!isNeeded) hold[Symbol.dispose]();
    }
  }

  async #plan(image: ImageBuild, { task, signal }: Required<ProvideOptions>): Promise<BuildPlan> {
    const { engine, references, contextLimits, builtFor } = this.#options;
    const baseOf = async (base: string) => {
      const found = await references.provide(base, { task, signal });
      return { reference: found.reference, id: found.image.id };
    };
    const plan = () => planBuild(image, { engine, builtFor, limits: contextLimits, signal, baseOf });
    return await this.#planning.pass(plan, { width: plannedAtOnce, signal });
  }

  /** No other process of this user builds or removes the image meanwhile. */
  async #buildOnce(plan: BuildPlan, options: OneBuild): Promise<ImageSummary> {
    const { activity, onBuilt } = this.#options;
    const subject = { image: plan.tag, task: options.task };
    const work = async () => (await this.#inspect(plan.tag)) ?? (await this.#build(plan, options));
    const onWait = () => activity.tell({ ...subject, stage: "wait" });
    return await activity.run(subject, options.signal, async () => {
      const built = await withLock(plan.tag, work, { onWait, signal: options.signal });
      await onBuilt(options.signal);
      return built;
    });
  }

  /** Naming the image again tells the engine that it is in use: the image that was named longest ago goes first. */
  async #inspect(tag: string): Promise<ImageSummary | null> {
    const { engine } = this.#options;
    const found = await engine.inspectImage(tag);
    if (found !== null) await engine.tagImage(found.id, tag);
    return found;
  }

  async #build(plan: BuildPlan, { task, timeoutSec, signal }: OneBuild): Promise<ImageSummary> {
    const { engine, activity, builtFor, isOffline, brigHome } = this.#options;
    const subject = { image: plan.tag, task };
    activity.tell({ ...subject, stage: "build", steps: plan.steps });
    const log: string[] = [];
    using limit = new TimeLimit(timeoutSec * 1000, signal);
    using _building = await this.#holds.take(buildsHold);
    const { files, originalLine } = await marked(plan, brigHome);
    try {
      await engine.buildImage(packContext(files), {
        tag: plan.tag,
        dockerfile: plan.dockerfile,
        buildArgs: { ...plan.buildArgs },
        labels: labelsOf(plan, task),
        target: plan.target,
        usesBuildKit: plan.usesBuildKit,
        hasNetwork: !isOffline,
        signal: limit.signal,
        onProgress: (line) => {
          log.push(line);
          if (log.length > shownLogLines) log.shift();
          activity.tell({ ...subject, stage: "build", line });
        },
      });
    } catch (error) {
      this.#hasFailed = true;
      if (limit.isOver && !signal.aborted) throw tooSlow({ task, builtFor, timeoutSec, log });
      throw isBrigError(error, "image.build-failed")
        ? explained(error, { plan, task, builtFor, isOffline, originalLine })
        : error;
    }
    const built = await engine.inspectImage(plan.tag);
    if (built !== null) return built;
    throw new BrigError(`the engine built the image ${plan.tag}, but does not have it`, {
      code: "image.build-failed",
      hint: "look at the engine's own log",
    });
  }
}

interface OneBuild {
  task: string | null;
  timeoutSec: number;
  signal: AbortSignal;
}

function labelsOf({ hash, baseIds }: BuildPlan, task: string | null): Record<string, string> {
  return {
    [builtImageLabels.hash]: hash,
    [builtImageLabels.task]: task ?? "",
    [builtImageLabels.bases]: baseIds.join(" "),
    ...finishedLabels("brig.unfinished-task-image"),
  };
}

interface MarkedFiles {
  files: ContextFiles;
  /** The line of the task's own Dockerfile, given one of the files' Dockerfile. */
  originalLine(line: number): number;
}

/** Uses a Dockerfile that marks whatever the build makes, since a build that fails gives the labels of the plan to nothing. */
async function marked({ files, dockerfile }: BuildPlan, brigHome: string | undefined): Promise<MarkedFiles> {
  if (brigHome === undefined) return { files, originalLine: (line) => line };
  const bytes = files.replaced.get(dockerfile) ?? (await readFile(join(files.directory, dockerfile)));
  const encoding = isUtf8(bytes) ? "utf8" : "latin1";
  const instruction = unfinishedInstruction("brig.unfinished-task-image", brigHome);
  const { text, originalLine } = addBelowStages(bytes.toString(encoding), instruction);
  const replaced = new Map([...files.replaced, [dockerfile, Buffer.from(text, encoding)]]);
  return { files: { ...files, replaced }, originalLine };
}

const subjectOf = (task: string | null, builtFor: BuiltFor) =>
  task === null ? "an image" : `the image of ${builtFor === "task" ? "the task " : ""}${task}`;

function tooSlow({
  task,
  builtFor,
  timeoutSec,
  log,
}: Pick<OneBuild, "task" | "timeoutSec"> & { builtFor: BuiltFor; log: string[] }) {
  const words = `building ${subjectOf(task, builtFor)} took longer than its limit of ${timeoutSec} seconds`;
  return new BrigError([words, ...log].join("\n  "), {
    code: "image.build-failed",
    hint: "the last lines of the build log are above; the limit is the task's build timeout",
  });
}

interface Explanation extends Pick<MarkedFiles, "originalLine"> {
  plan: BuildPlan;
  task: string | null;
  builtFor: BuiltFor;
  isOffline: boolean;
}

/** Names what may be too new in the Dockerfile for the engine. */
function explained(
  error: BrigError,
  { plan, task, builtFor, isOffline, originalLine }: Explanation,
): BrigError {
  const recent = plan.buildKitFeatures.filter(({ isRecent }) => isRecent);
  const features = recent.map(({ line, name }) => `${name} in line ${line}`);
  const message = error.message
    .replace(`the image ${plan.tag}`, subjectOf(task, builtFor))
    .replace(
      /\b(parse error (?:on )?line )(\d+)/,
      (_, words, line) => `${words}${originalLine(Number(line))}`,
    );
  return new BrigError(message, {
    code: "image.build-failed",
    hint:
      features.length === 0
        ? isOffline
          ? "with --offline a build has no network: build it once without, and later runs find it"
          : error.hint
        : `the last lines of the build log are above; the engine may be too old for what ${plan.dockerfile} uses: ${features.join(", ")}`,
    errno: error.errno,
    cause: error,
  });
}

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
      const onProgress: PullProgress = (line, pulled) =>
        activity.tell({ ...subject, stage: "pull", line, pulled });
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

interface ProvideOptions {
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

/** Work on an image that is under way. */
export interface ImageProgress {
  /** The reference, or the tag of an image that is built. */
  image: string;
  /** Null if the caller named none. */
  task: string | null;
  /**
   * "queue": others are built or pulled first; "wait": another process is building it; "failed" and "ready" come last.
   */
  stage: "queue" | "wait" | "pull" | "build" | "ready" | "failed";
  /** A line of the engine's progress. */
  line?: string;
  /** How far a pull is; only with a line about one of its layers. */
  pulled?: PulledBytes | undefined;
  /** The number of steps that a build has at most, as it begins. */
  steps?: number;
}

/** Limits how many images are built or pulled at once, and tells about each. */
export class ImageActivity {
  readonly #gate = new Gate();
  readonly #width: number;
  readonly #onProgress: ((progress: ImageProgress) => void) | undefined;

  constructor(width: number, onProgress: ((progress: ImageProgress) => void) | undefined) {
    this.#width = width;
    this.#onProgress = onProgress;
  }

  tell(progress: ImageProgress): void {
    this.#onProgress?.(progress);
  }

  /** Runs the work when it is its turn, and tells how it ends. */
  async run<T>(
    subject: Pick<ImageProgress, "image" | "task">,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T> {
    this.tell({ ...subject, stage: "queue" });
    try {
      const result = await this.#gate.pass(work, { width: this.#width, signal });
      this.tell({ ...subject, stage: "ready" });
      return result;
    } catch (error) {
      this.tell({ ...subject, stage: "failed" });
      throw error;
    }
  }
}
