import { appendFileSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { LABELS, readSessionLabels } from "../../src/sandbox/labels.js";
import { call } from "./engine.js";
import { isEndedRun, isOurs, testLabel, testLabels } from "./test-run.js";

/**
 * The sandboxes that processes of this run make. They carry no label of a test, and their owner may have ended by the time somebody
 * asks, so the engine's events are looked at while the run goes on; who it was is kept in a file, for the run after one that was killed.
 */
export class RunContainers {
  readonly #ids = new Set<string>();
  readonly #file = noteOf(testLabels()[testLabel] ?? "");
  readonly #stop: () => void;
  #broken: Error | null = null;

  static async watch(engine: Engine): Promise<RunContainers> {
    const filters = JSON.stringify({ type: ["container"], event: ["create"], label: [LABELS.session] });
    const events = await call(new URL(engine.endpoint).pathname, {
      method: "GET",
      path: `/events?filters=${encodeURIComponent(filters)}`,
    });
    return new RunContainers(events);
  }

  private constructor(events: Awaited<ReturnType<typeof call>>) {
    const lines = createInterface(events);
    lines.on("line", (line) => this.#note(JSON.parse(line)));
    events.on("error", (error) => {
      this.#broken ??= error;
    });
    this.#stop = () => {
      lines.close();
      events.destroy();
    };
  }

  has(id: string, labels: Record<string, string>): boolean {
    const owner = readSessionLabels(labels)?.owner.pid;
    return this.#ids.has(id) || (owner !== undefined && isOurs(owner));
  }

  /** Throws where the engine stopped telling. */
  end(): void {
    this.#stop();
    rmSync(this.#file, { force: true });
    if (this.#broken !== null) throw this.#broken;
  }

  #note({ Actor }: { Actor: { ID: string; Attributes: Record<string, string> } }): void {
    const owner = readSessionLabels(Actor.Attributes)?.owner.pid;
    if (owner === undefined || !isOurs(owner)) return;
    this.#ids.add(Actor.ID);
    appendFileSync(this.#file, `${Actor.ID}\n`, { mode: 0o600 });
  }
}

/** What runs that were killed had made. Forgets it. */
export function containersOfEndedRuns(): string[] {
  const files = readdirSync(tmpdir())
    .filter((name) => name.startsWith(prefix) && isEndedRun(name.slice(prefix.length)))
    .map((name) => join(tmpdir(), name));
  return files.flatMap((file) => {
    const ids = readFileSync(file, "utf8").split("\n");
    rmSync(file, { force: true });
    return ids.filter((id) => /^[0-9a-f]{64}$/.test(id));
  });
}

const prefix = "brig-test-";

function noteOf(run: string): string {
  return join(tmpdir(), `${prefix}${basename(run)}`);
}
