import { lstatSync } from "node:fs";
import { release } from "node:os";
import { BrigError } from "../../../src/errors.js";
import {
  ExitKind,
  FileOperation,
  FrameType,
  RECEIPT_RESULT_BYTES,
  REPORT_SECTION_HEAD_BYTES,
} from "../../../src/sandbox/channel/protocol.js";
import type {
  ContainerBody,
  ContainerEvent,
  ContainerState,
  CreatedContainer,
  Engine,
  ExecStream,
  ImageSummary,
  VolumeSummary,
} from "../../../src/sandbox/docker/engine-types.js";
import type { PlannedTmpfs, SandboxPlan } from "../../../src/sandbox/plan/plan.js";
import { exitPayload, FakeRunner, type SentFrame } from "./channel/fake-runner.js";
import { engine as facts } from "./plan/plan-fixture.js";
import { reportSections } from "./proof/kernel-sections.js";

const MOST_CONTAINERS = 20;
const IMAGE_ID = `sha256:${"1".repeat(64)}`;

/** A container of a played engine, with the runner in it. */
export interface PlayedContainer {
  readonly id: string;
  readonly name: string;
  readonly body: ContainerBody;
  /** Another one once it is started again. */
  runner: FakeRunner;
  /** What the kernel in it reports, which a test may spoil before the runner is asked. */
  readonly sections: Map<string, string>;
  state: "created" | "running" | "gone";
  isPaused?: boolean;
}

/**
 * An engine in memory, whose kernel enforces what is asked of it, for the parts that need a whole sandbox. Each method
 * may be replaced by a test. What is not played here fails loudly, because there is no such method.
 */
export class PlayedEngine {
  readonly endpoint = "unix:///played/docker.sock";
  readonly arch = "amd64";
  readonly containers: PlayedContainer[] = [];
  /** The methods that were called, in order. Those that only read are left out. */
  readonly calls: string[] = [];
  imageId = IMAGE_ID;
  /** Called with each frame that the runner of a container has to answer. Default: commands exit at once with 0, and nothing is found at the end. */
  onFrame: (container: PlayedContainer, sent: SentFrame) => void = (
    { runner },
    { type, channel, payload },
  ) => {
    if (type === FrameType.spawn) runner.exit(channel);
    if (type === FrameType.file && payload[0] === FileOperation.receipt)
      runner.send(FrameType.exit, channel, fileExit(Buffer.alloc(RECEIPT_RESULT_BYTES)));
  };
  /** Called with each container as it is created. */
  onCreated: (container: PlayedContainer) => void = () => undefined;

  /** This engine, with the type that the code under test asks for. */
  get asEngine(): Engine {
    return this as unknown as Engine;
  }

  /** The only container that there has been. */
  get container(): PlayedContainer {
    const [one] = this.containers;
    if (one === undefined || this.containers.length > 1)
      throw new Error(`${this.containers.length} containers`);
    return one;
  }

  get running(): PlayedContainer[] {
    return this.containers.filter(({ state }) => state !== "gone");
  }

  info = async () => ({ ...facts, kernel: release() });

  inspectImage = async (ref: string): Promise<ImageSummary | null> => ({
    id: this.imageId,
    tags: [ref],
    sizeBytes: 1,
    createdAt: new Date(0),
    lastTaggedAt: null,
    labels: {},
    arch: "amd64",
    env: [],
    volumes: [],
    user: "",
    workingDir: "",
  });

  inspectVolume = async (name: string): Promise<VolumeSummary | null> => ({
    name,
    labels: {},
    mountpoint: `/volumes/${name}`,
    createdAt: null,
  });

  listContainers = async () => [];

  createContainer = async (body: ContainerBody, { name = "" } = {}): Promise<string> => {
    this.calls.push("createContainer");
    // No test needs so many. Code that starts one container after the other would otherwise never end.
    if (this.containers.length >= MOST_CONTAINERS) throw tooMany();
    const sections = reportSections(enforced(body));
    const id = `${"c".repeat(11)}${this.containers.length + 1}`;
    const container: PlayedContainer = {
      id,
      name,
      body,
      runner: new FakeRunner(),
      sections,
      state: "created",
    };
    container.runner.onFrame = (sent) => this.#take(container, sent);
    this.containers.push(container);
    this.onCreated(container);
    return id;
  };

  inspectCreated = async (id: string): Promise<CreatedContainer> => {
    const { body } = this.#existing(id);
    return {
      imageId: this.imageId,
      entrypoint: body.Entrypoint,
      cmd: body.Cmd,
      user: body.User ?? "",
      workingDir: body.WorkingDir ?? "",
      // An entry without "=" asks the engine to remove the image's variable of that name.
      env: body.Env.filter((entry) => entry.includes("=")),
      labels: body.Labels,
      stopSignal: body.StopSignal ?? "",
      healthcheck: body.Healthcheck?.Test ?? [],
    };
  };

  attachContainer = async (id: string): Promise<ExecStream> => {
    this.calls.push("attachContainer");
    const container = this.#existing(id);
    if (container.runner.wasEnded) container.runner = new FakeRunner();
    container.runner.onFrame = (sent) => this.#take(container, sent);
    return await container.runner.dial();
  };

  startContainer = async (id: string): Promise<void> => {
    this.calls.push("startContainer");
    this.#existing(id).state = "running";
  };

  openExec = async (id: string): Promise<ExecStream> => {
    this.calls.push("openExec");
    if (!this.running.some((one) => one.id === id && one.state === "running"))
      throw new BrigError(`the container ${id} is not running`, { code: "sandbox.gone", reason: "killed" });
    return await this.#existing(id).runner.dial();
  };

  inspectContainer = async (ref: string): Promise<ContainerState | null> => {
    const found = this.running.find(({ id, name }) => id === ref || name === ref);
    if (found === undefined) return null;
    return {
      id: found.id,
      running: found.state === "running",
      paused: found.isPaused === true,
      exitCode: 0,
      oomKilled: false,
      error: "",
      pid: 1,
      imageId: this.imageId,
    };
  };

  /** What has ended was killed from outside. */
  containerEvents = async (id: string): Promise<ContainerEvent[]> =>
    this.running.some((one) => one.id === id)
      ? [{ action: "start", atMs: 0, exitCode: null }]
      : [
          { action: "kill", atMs: 1, exitCode: null },
          { action: "die", atMs: 2, exitCode: 137 },
        ];

  /** The runner that was asked to end ends its container with it. */
  waitRemoved = async (id: string, { signal }: { signal?: AbortSignal } = {}): Promise<void> => {
    this.calls.push("waitRemoved");
    const container = this.containers.find((one) => one.id === id);
    while (container !== undefined && container.state !== "gone" && signal?.aborted !== true) {
      if (container.runner.wasEnded) container.state = "gone";
      await new Promise(setImmediate);
    }
    signal?.throwIfAborted();
  };

  waitContainer = async (id: string, options: { signal?: AbortSignal } = {}): Promise<number> => {
    await this.waitRemoved(id, options);
    return 0;
  };

  removeContainer = async (ref: string, _options: { signal?: AbortSignal } = {}): Promise<void> => {
    this.calls.push("removeContainer");
    for (const one of this.running) if (one.id === ref || one.name === ref) this.end(one);
  };

  pauseContainer = async (id: string): Promise<void> => {
    this.calls.push("pauseContainer");
    this.#existing(id).isPaused = true;
  };

  unpauseContainer = async (id: string): Promise<void> => {
    this.calls.push("unpauseContainer");
    const container = this.#existing(id);
    if (container.isPaused !== true) throw new Error("the container is not paused");
    container.isPaused = false;
  };

  /** As when the container is killed from outside. */
  end(container: PlayedContainer): void {
    container.state = "gone";
    container.runner.cut();
  }

  #existing(id: string): PlayedContainer {
    const found = this.running.find((one) => one.id === id);
    if (found === undefined) throw new Error(`there is no container ${id}`);
    return found;
  }

  #take(container: PlayedContainer, sent: SentFrame): void {
    const isReport = sent.type === FrameType.file && sent.payload[0] === FileOperation.report;
    if (!isReport) {
      this.onFrame(container, sent);
      return;
    }
    this.report(container.runner, sent.channel, container.sections);
  }

  /** Answers the request for a report on this channel. */
  report(runner: FakeRunner, channel: number, sections: ReadonlyMap<string, string>): void {
    runner.send(FrameType.stdout, channel, encodeSections(sections));
    runner.send(FrameType.exit, channel, fileExit());
  }
}

/** A refusal, after which nothing has to be looked for. */
function tooMany(): Error {
  return Object.assign(new Error("too many containers"), { code: "ECONNREFUSED" });
}

/** The payload of EXIT for a file operation that has gone well. */
function fileExit(result: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([exitPayload(0, ExitKind.file), result]);
}

function encodeSections(sections: ReadonlyMap<string, string>): Buffer {
  return Buffer.concat(
    [...sections].map(([name, text]) => {
      const head = Buffer.alloc(REPORT_SECTION_HEAD_BYTES);
      head.writeUInt16LE(Buffer.byteLength(name), 0);
      head.writeUInt32LE(Buffer.byteLength(text), 2);
      return Buffer.concat([head, Buffer.from(name), Buffer.from(text)]);
    }),
  );
}

/** As much of the plan as the request to the engine shows, and as the kernel's report needs. */
function enforced({ User = "", Env, HostConfig }: ContainerBody): SandboxPlan {
  const [uid = 0, gid = 0] = User.split(":").map(Number);
  const mounted = Object.entries(HostConfig.Tmpfs);
  // Directories above the workspace are mounted read-only if they are below a tmpfs, for example where TMPDIR is below /tmp.
  const isParent = (options: string) => options.split(",").includes("ro");
  const tmpfs = mounted
    .filter(([, options]) => !isParent(options))
    .map(([path, options]) => tmpfsOf(path, options));
  const ulimit = (wanted: string) => HostConfig.Ulimits?.find(({ Name }) => Name === wanted)?.Soft ?? 0;
  const shared = tmpfs.find(({ path }) => path === "/dev/shm");
  const mounts = HostConfig.Mounts.filter(({ Target }) => !/^\/(?:\.brig$|etc\/|dev\/pts$)/.test(Target));
  return {
    user: { uid, gid },
    noNewPrivileges: HostConfig.SecurityOpt.includes("no-new-privileges"),
    capabilities: HostConfig.CapDrop.includes("ALL") ? "none" : "full-access",
    rootfs: HostConfig.ReadonlyRootfs ? "ro" : "rw",
    network: HostConfig.NetworkMode,
    containerEnvironment: Object.fromEntries(Env.map((entry) => entry.split("=", 2))),
    tmpfs: tmpfs.filter((one) => one !== shared),
    parents: mounted.filter(([, options]) => isParent(options)).map(([path]) => path),
    mounts: mounts.map(({ Target, Source = "", ReadOnly, Type }) => ({
      path: Target,
      access: ReadOnly ? "ro" : "rw",
      identity: Type === "bind" ? identityOf(Source) : null,
    })),
    limits: {
      memoryBytes: HostConfig.Memory,
      nanoCpus: HostConfig.NanoCpus,
      pids: HostConfig.PidsLimit,
      openFiles: ulimit("nofile"),
      coreBytes: ulimit("core"),
      shmBytes: shared?.sizeBytes,
      shmInodes: shared?.maxInodes,
      ipc: HostConfig.Sysctls ?? {},
      terminals: terminalsOf(HostConfig),
    },
  } as unknown as SandboxPlan;
}

function terminalsOf({ Mounts }: ContainerBody["HostConfig"]): number {
  const options = Mounts.find(({ Target }) => Target === "/dev/pts")?.VolumeOptions?.DriverConfig?.Options;
  return Number(/max=(\d+)/.exec(options?.o ?? "")?.[1]);
}

function tmpfsOf(path: string, options: string): PlannedTmpfs {
  const number = (name: string) => Number(new RegExp(`${name}=(\\d+)`).exec(options)?.[1] ?? 0);
  return {
    path,
    sizeBytes: number("size"),
    maxInodes: number("nr_inodes"),
    exec: !options.includes("noexec"),
    mode: String(number("mode")),
    uid: number("uid"),
    gid: number("gid"),
  };
}

function identityOf(path: string): { dev: string; ino: string } | null {
  const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? null : { dev: String(stat.dev), ino: String(stat.ino) };
}
