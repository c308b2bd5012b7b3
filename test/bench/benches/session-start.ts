import { randomUUID } from "node:crypto";
import type { Sandbox } from "brigbox";
import { containerBody } from "../../support/container-body.js";
import { type Bench, type BenchContext, compare } from "../bench.js";
import { engineCalls, execInSandbox, execOverEngineApi, outputOf } from "../rivals.js";
import { type Contender, repeat, takeTurns } from "../sampling.js";

type Engine = Sandbox["engine"];

/** From nothing to the end of the first command. Removing the container afterwards is not part of it. */
export const sessionStart: Bench = {
  name: "session-start",
  async run(context) {
    const { isQuick, progress, signal } = context;
    await using first = await context.openSandbox();
    const { engine, image } = first;
    const rival = await containerStart(engine, { image, context });
    const contenders = {
      ours: startOf(context, { name: "Sandbox.create + exec", engine }),
      unconnected: startOf(context, { name: "the same, connecting first" }),
      rival,
    };
    for (const { sample } of Object.values(contenders)) await repeat(2, sample);

    const rounds = isQuick ? 5 : 24;
    const {
      ours,
      unconnected,
      rival: plain,
    } = await takeTurns(contenders, {
      rounds,
      signal,
      onRound: (round) => progress(`starting sessions, round ${round} of ${rounds}`),
    });
    return [
      compare(ours, plain, {
        title: "create to first command finished",
        unit: "ms",
        direction: "ours / rival",
        target: { kind: "at-most", value: 1.3 },
      }),
      compare(unconnected, plain, {
        title: "… and connect to the engine before",
        unit: "ms",
        direction: "ours / rival",
      }),
    ];
  },
};

function startOf(
  { openSandbox }: BenchContext,
  { name, engine }: { name: string; engine?: Engine },
): Contender {
  return {
    name,
    batch: 1,
    async sample() {
      const startedAt = performance.now();
      await using sandbox = await openSandbox({ engine });
      await execInSandbox(sandbox, ["true"]);
      return performance.now() - startedAt;
    },
  };
}

interface PlainContainer {
  image: string;
  context: BenchContext;
}

/** With the docker program where it is installed, else the same steps over the Engine API. */
async function containerStart(engine: Engine, plain: PlainContainer): Promise<Contender> {
  const docker = ["--host", engine.endpoint];
  const hasProgram = await outputOf("docker", [...docker, "version", "--format", "{{.Server.Version}}"]).then(
    () => true,
    () => false,
  );
  return hasProgram ? startWithProgram(docker, plain) : startOverEngineApi(engine, plain);
}

/** Ends the container by itself, should nobody be left to remove it. */
const idle = ["sleep", "600"];
const label = "brig.bench";

function startWithProgram(docker: string[], { image, context }: PlainContainer): Contender {
  const runtime = context.runtime === undefined ? [] : ["--runtime", context.runtime];
  const options = ["-d", "--rm", "--network", "none", "--label", label, ...runtime];
  return {
    name: "docker run -d + docker exec",
    batch: 1,
    async sample() {
      const name = `brig-bench-${randomUUID()}`;
      try {
        const startedAt = performance.now();
        await outputOf("docker", [...docker, "run", ...options, "--name", name, image, ...idle]);
        await outputOf("docker", [...docker, "exec", name, "true"]);
        return performance.now() - startedAt;
      } finally {
        await outputOf("docker", [...docker, "rm", "--force", name]);
      }
    },
  };
}

function startOverEngineApi(engine: Engine, { image, context }: PlainContainer): Contender {
  const calls = engineCalls({ engine });
  return {
    name: "Engine API: run + exec",
    batch: 1,
    async sample() {
      const startedAt = performance.now();
      const containerId = await calls.createContainer(plainBody(image, context.runtime));
      try {
        await calls.startContainer(containerId);
        await execOverEngineApi({ engine, containerId }, ["true"]);
        return performance.now() - startedAt;
      } finally {
        await calls.removeContainer(containerId);
      }
    },
  };
}

/** What `docker run -d --rm --network none` asks for. */
function plainBody(image: string, runtime: string | undefined): ReturnType<typeof containerBody> {
  return containerBody(image, [], {
    Cmd: idle,
    Labels: { [label]: "" },
    host: {
      AutoRemove: true,
      LogConfig: { Type: "json-file", Config: {} },
      ...(runtime === undefined ? {} : { Runtime: runtime }),
    },
  });
}
