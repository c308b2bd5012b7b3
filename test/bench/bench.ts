import type { Sandbox } from "brigbox";
import { type Ratio, type Round, ratioOfQuantiles, type Summary, summarize } from "./statistics.js";

/** One subject that is measured. A new one is a file in `benches` and a line in main.ts. */
export interface Bench {
  /** As `--only` takes it. */
  name: string;
  run(context: BenchContext): Promise<Row[]>;
}

export interface BenchContext {
  /** Fewer samples, for a look while developing: figures of a quick run are not to be quoted. */
  isQuick: boolean;
  /** OCI runtime for both sides. Default: the engine's own. */
  runtime: string | undefined;
  /** An empty directory that sandboxes may have as their workspace. */
  workspace: string;
  /** Aborted by ctrl-C. */
  signal: AbortSignal;
  /** What is being measured now. */
  progress(line: string): void;
  openSandbox(options?: Parameters<typeof Sandbox.create>[0]): Promise<Sandbox>;
}

export type Unit = "ms" | "calls/s" | "MB/s" | "MB" | "kB";

export type Target = { kind: "at-least"; value: number } | { kind: "at-most"; value: number };

export interface Side {
  name: string;
  summary: Summary;
}

/** Two sides measured in turns. Only the ratio says anything about another machine. */
export interface RatioRow {
  kind: "ratio";
  title: string;
  unit: Unit;
  ours: Side;
  rival: Side;
  /** Which side is divided by which. */
  direction: Direction;
  /** Of what of the samples the ratio is. */
  judged: "median" | "p95";
  ratio: Ratio;
  target: Target | null;
  isMet: boolean | null;
}

/** One side that has no rival: a size, or a floor. */
export interface QuantityRow {
  kind: "quantity";
  title: string;
  unit: Unit;
  ours: Side;
  /** The sample that the target judges. */
  judged: "median" | "p95" | "max";
  target: Target | null;
  isMet: boolean | null;
}

export type Row = RatioRow | QuantityRow;

type Direction = "rival / ours" | "ours / rival";

/** The samples of one side in each round. */
export interface Samples {
  name: string;
  rounds: readonly (readonly number[])[];
}

export interface Comparison {
  title: string;
  unit: Unit;
  direction: Direction;
  /** Default: the medians. */
  judged?: "median" | "p95";
  target?: Target;
}

export function compare(ours: Samples, rival: Samples, comparison: Comparison): RatioRow {
  const { title, unit, direction, judged = "median", target = null } = comparison;
  const [over, under] = direction === "rival / ours" ? [rival, ours] : [ours, rival];
  const rounds = over.rounds.map(
    (numerator, index): Round => ({ numerator, denominator: under.rounds[index] ?? [] }),
  );
  const ratio = ratioOfQuantiles(rounds, { fraction: judged === "p95" ? 0.95 : 0.5 });
  return {
    kind: "ratio",
    title,
    unit,
    ours: side(ours),
    rival: side(rival),
    direction,
    judged,
    ratio,
    target,
    isMet: target && meets(ratio.value, target),
  };
}

export function quantity(
  samples: { name: string; values: readonly number[] },
  options: QuantityOptions,
): QuantityRow {
  const { title, unit, judged = "median", target = null } = options;
  const ours = side({ name: samples.name, rounds: [samples.values] });
  const isMet = target && meets(ours.summary[judged], target);
  return { kind: "quantity", title, unit, ours, judged, target, isMet };
}

interface QuantityOptions {
  title: string;
  unit: Unit;
  judged?: "median" | "p95" | "max";
  target?: Target;
}

function side({ name, rounds }: Samples): Side {
  return { name, summary: summarize(rounds.flat()) };
}

function meets(value: number, target: Target): boolean {
  return target.kind === "at-least" ? value >= target.value : value <= target.value;
}
