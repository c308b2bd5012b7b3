/** Source of a value of the configuration. Lines count from 1. */
export type ConfigSource =
  | { kind: "default" }
  | { kind: "file"; file: string; line: number }
  | { kind: "profile"; profile: string; file: string; line: number }
  | { kind: "environment"; variable: string }
  | { kind: "workspace"; file: string; line: number }
  | { kind: "override" }
  | { kind: "flag"; flag: string };

export function describeSource(source: ConfigSource): string {
  switch (source.kind) {
    case "default":
      return "default";
    case "file":
    case "workspace":
      return `${source.file}:${source.line}`;
    case "profile":
      return `${source.file}:${source.line} (profile ${source.profile})`;
    case "environment":
      return source.variable;
    case "override":
      return "-c";
    case "flag":
      return source.flag;
    default:
      return source satisfies never;
  }
}
