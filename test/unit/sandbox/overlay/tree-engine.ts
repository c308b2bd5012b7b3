import type { ContainerBody, Engine, VolumeSummary } from "../../../../src/docker/engine-types.js";
import { BrigError } from "../../../../src/errors.js";
import type { SandboxPlan } from "../../../../src/sandbox/plan/plan.js";
import { FakeRunner } from "../channel/fake-runner.js";
import { answerFiles, listEntry, type PlayedAnswer, type PlayedRequest } from "../channel/played-files.js";
import { engine } from "../plan/plan-fixture.js";
import { reportSections } from "../proof/kernel-sections.js";

/** A container as the engine has it. */
export interface PlayedContainer {
  id: string;
  name: string;
  body: ContainerBody;
  runner: FakeRunner;
  requests: PlayedRequest[];
  isRemoved: boolean;
}

export interface PlayedEngine extends Engine {
  readonly containers: PlayedContainer[];
  readonly volumes: { created: string[]; removed: string[] };
  /** What a container's kernel reports. */
  report: (container: PlayedContainer) => ReadonlyMap<string, string>;
  /** Answers other requests to the runners; null for the usual answer. */
  answer: (request: PlayedRequest, container: PlayedContainer) => PlayedAnswer | null;
  /** Called before a volume is created or removed, or a container created, started or removed; may throw. */
  before: (what: string, name: string) => void | Promise<void>;
  /** The container ends, as if the kernel had killed its runner. */
  kill(container: PlayedContainer): void;
}

export const IMAGE_ID = "sha256:1";

/** An engine whose containers have runners that report what the test says. */
export function playedEngine(): PlayedEngine {
  const containers: PlayedContainer[] = [];
  const volumes: PlayedEngine["volumes"] = { created: [], removed: [] };
  const dead = new Set<string>();
  const of = (id: string) => {
    const found = containers.find((one) => one.id === id || one.name === id);
    if (found === undefined) throw new Error(`no container ${id}`);
    return found;
  };
  const gone = () => new BrigError("not running", { code: "sandbox.gone", reason: "killed" });
  const played = {
    ...{ containers, volumes, endpoint: "unix:///played.sock", arch: "amd64" },
    report: () => new Map<string, string>(),
    answer: () => null,
    before: () => undefined,
    info: async () => engine,
    createVolume: async (name: string) => {
      await played.before("create volume", name);
      volumes.created.push(name);
      return { name, mountpoint: `${engine.dockerRootDir}/volumes/${name}/_data` } as VolumeSummary;
    },
    removeVolume: async (name: string) => {
      await played.before("remove volume", name);
      volumes.removed.push(name);
    },
    createContainer: async (body: ContainerBody, { name = "" } = {}) => {
      await played.before("create container", name);
      const runner = new FakeRunner();
      const container: PlayedContainer = {
        ...{ id: `c${containers.length + 1}`, name, body, runner, requests: [], isRemoved: false },
      };
      const answered = answerFiles(runner, (request) => {
        const said = played.answer(request, container);
        if (said !== null) return said;
        if (request.operation === "report") return { output: [sections(played.report(container))] };
        return request.operation === "list" ? { result: listEntry(1, "same") } : {};
      });
      container.requests = answered.requests;
      containers.push(container);
      return container.id;
    },
    inspectCreated: async (id: string) => {
      const { body } = of(id);
      return {
        ...{ imageId: IMAGE_ID, entrypoint: body.Entrypoint, cmd: body.Cmd, user: body.User },
        ...{
          workingDir: body.WorkingDir,
          env: body.Env.filter((one) => one.includes("=")),
          labels: body.Labels,
        },
        ...{ stopSignal: body.StopSignal, healthcheck: ["NONE"] },
      };
    },
    attachContainer: async (id: string) => await of(id).runner.dial(),
    startContainer: async (id: string) => await played.before("start container", of(id).name),
    openExec: async (id: string) => {
      if (dead.has(id)) throw gone();
      return await of(id).runner.dial();
    },
    inspectContainer: async (id: string) => ({
      ...{ id: of(id).id, running: !dead.has(of(id).id), paused: false, exitCode: 1, oomKilled: false },
    }),
    containerEvents: async () => [{ action: "die", exitCode: 1, atMs: 0 }],
    listContainers: async () => [],
    removeContainer: async (id: string) => {
      await played.before("remove container", of(id).name);
      of(id).isRemoved = true;
    },
    waitRemoved: async (id: string) => {
      of(id).isRemoved = true;
    },
    kill(container: PlayedContainer) {
      dead.add(container.id);
      container.runner.cut();
    },
  } as unknown as PlayedEngine;
  return played;
}

function sections(report: ReadonlyMap<string, string>): Buffer {
  const all = [...report].map(([name, content]) => {
    const head = Buffer.alloc(6);
    head.writeUInt16LE(Buffer.byteLength(name), 0);
    head.writeUInt32LE(Buffer.byteLength(content), 2);
    return Buffer.concat([head, Buffer.from(name), Buffer.from(content)]);
  });
  return Buffer.concat(all);
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
