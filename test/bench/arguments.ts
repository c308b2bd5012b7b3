import { parseArgs } from "node:util";

export const usage = `usage: npm run bench -- [--only NAME]… [--quick] [--runtime NAME] [--json] [--out FILE]
  --only NAME     one bench; may be given several times
  --quick         fewer samples: for a look, not for quoting
  --runtime NAME  OCI runtime for both sides, such as runsc
  --json          the report on stdout as JSON instead of a table
  --out FILE      the report as JSON in this file too
`;

export interface BenchOptions {
  kind: "understood";
  /** Names of benches; empty for all. */
  only: string[];
  isQuick: boolean;
  runtime: string | undefined;
  asJson: boolean;
  out: string | undefined;
}

export function readArguments(
  argv: string[],
  names: readonly string[],
): BenchOptions | { kind: "refused"; reason: string } {
  try {
    const { values } = parseArgs({
      args: argv,
      options: {
        only: { type: "string", multiple: true, default: [] },
        quick: { type: "boolean", default: false },
        runtime: { type: "string" },
        json: { type: "boolean", default: false },
        out: { type: "string" },
      },
    });
    const { only, quick, runtime, json, out } = values;
    const unknown = only.find((name) => !names.includes(name));
    if (unknown !== undefined)
      return { kind: "refused", reason: `no bench is named ${unknown}; there are ${names.join(", ")}` };
    return { kind: "understood", only, isQuick: quick, runtime, asJson: json, out };
  } catch (error) {
    return { kind: "refused", reason: error instanceof Error ? error.message : String(error) };
  }
}
