import type { ContainerBody, VolumeSummary } from "../../../../src/sandbox/docker/engine-types.js";
import type { SandboxPlan } from "../../../../src/sandbox/plan/plan.js";
import type { SentFrame } from "../channel/fake-runner.js";
import { answerFiles, listEntry, type PlayedAnswer, type PlayedRequest } from "../channel/played-files.js";
import { engine as facts } from "../plan/plan-fixture.js";
import { type PlayedContainer, PlayedEngine } from "../played-engine.js";
import { reportSections } from "../proof/kernel-sections.js";

/** A played engine for the containers and volumes of a tree, whose runners say what the test wants. */
export class TreeEngine extends PlayedEngine {
  readonly volumes = { created: [] as string[], removed: [] as string[] };
  /** What a container's kernel reports. */
  reported: (container: PlayedContainer) => ReadonlyMap<string, string> = () => new Map();
  /** Answers other requests to the runners; null for the usual answer. */
  answer: (request: PlayedRequest, container: PlayedContainer) => PlayedAnswer | null = () => null;
  /** Called before a volume is created or removed, or a container created, started or removed; may throw. */
  before: (what: string, name: string) => void | Promise<void> = () => undefined;
  readonly #takers = new Map<PlayedContainer, (sent: SentFrame) => void>();

  constructor() {
    super();
    const { createContainer, startContainer, removeContainer } = this;
    this.createContainer = async (body: ContainerBody, options = {}) => {
      await this.before("create container", options.name ?? "");
      return await createContainer(body, options);
    };
    this.startContainer = async (id) => {
      await this.before("start container", this.#nameOf(id));
      await startContainer(id);
    };
    this.removeContainer = async (id, options) => {
      await this.before("remove container", this.#nameOf(id));
      await removeContainer(id, options);
    };
    this.onCreated = (container) => {
      container.sections.clear();
      for (const [name, text] of this.reported(container)) container.sections.set(name, text);
      answerFiles(container.runner, (request) => this.answer(request, container) ?? usualAnswer(request));
      this.#takers.set(container, container.runner.onFrame);
    };
    this.onFrame = (container, sent) => this.#takers.get(container)?.(sent);
  }

  createVolume = async (name: string): Promise<VolumeSummary> => {
    await this.before("create volume", name);
    this.volumes.created.push(name);
    return { name, mountpoint: `${facts.dockerRootDir}/volumes/${name}/_data` } as VolumeSummary;
  };

  removeVolume = async (name: string): Promise<void> => {
    await this.before("remove volume", name);
    this.volumes.removed.push(name);
  };

  #nameOf(ref: string): string {
    return this.containers.find(({ id, name }) => id === ref || name === ref)?.name ?? ref;
  }
}

function usualAnswer({ operation }: PlayedRequest): PlayedAnswer {
  return operation === "list" ? { result: listEntry(1, "same") } : {};
}

/** What the kernel reports in a container of a tree with this plan, whose directories have these states. */
export function treeReport(plan: SandboxPlan, stats: Record<string, string>): Map<string, string> {
  const report = reportSections(plan);
  for (const [path, stat] of Object.entries(stats)) report.set(`stat/${path}`, stat);
  for (const probe of ["ptrace", "chmod-setuid"]) report.set(`probe/${probe}`, "0");
  const { overlay } = plan;
  if (overlay === null) return report;
  const layers = `lowerdir=${overlay.lower},upperdir=${overlay.upper},workdir=${overlay.work}`;
  const table = report.get("/proc/self/mountinfo") ?? "";
  const line = new RegExp(`^(\\d+ 9) \\S+ \\S+ ${overlay.path} .*$`, "m");
  report.set(
    "/proc/self/mountinfo",
    table.replace(line, `$1 0:77 / ${overlay.path} rw,relatime - overlay overlay rw,${layers}`),
  );
  return report;
}
