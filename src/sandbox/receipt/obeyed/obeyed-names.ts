import { obeyedByBuildTools } from "./build-tools.js";
import { obeyedElsewhere } from "./elsewhere.js";
import type { ObeyedName } from "./obeyed-name.js";
import { obeyedByScriptTools } from "./script-tools.js";
import { obeyedWhenOpened } from "./when-opened.js";

/** The dangerous first. The first that fits a path counts. */
export const obeyedNames: readonly ObeyedName[] = [
  ...obeyedWhenOpened,
  ...obeyedByScriptTools,
  ...obeyedByBuildTools,
  ...obeyedElsewhere,
];

interface Rule {
  name: string;
  by: string;
  isExempt: boolean;
  /** The names of its path in lower case, from the last one to the first. */
  names: readonly string[];
}

interface RuleTable {
  /** The rules by the last names of their paths. */
  named: ReadonlyMap<string, readonly Rule[]>;
  /** The rules whose last name has a "*" in it. */
  others: readonly Rule[];
}

const rules = obeyedNames.map(([name, by]): Rule & { isDirectory: boolean } => {
  const isExempt = name.startsWith("!");
  const path = name.slice(isExempt ? 1 : 0).toLowerCase();
  return { name, by, isExempt, isDirectory: path.endsWith("/"), names: namesOf(path) };
});
const files = tableOf(rules.filter(({ isDirectory }) => !isDirectory));
const directories = tableOf(rules.filter(({ isDirectory }) => isDirectory));
const ways = tableOf(rules.filter(({ isExempt }) => !isExempt).flatMap(waysTo));

/** The programs that obey a file at this relative path; null if none does. A link may also stand for a directory. */
export function whoObeys(path: string, type: "file" | "symlink"): string | null {
  const names = namesOf(path.toLowerCase());
  const fitting = [find(files, names)];
  for (let above = names.slice(1); above.length > 0; above = above.slice(1))
    fitting.push(find(directories, above));
  if (type === "symlink") fitting.push(find(directories, names), find(ways, names));
  const first = fitting
    .filter((rule) => rule !== undefined)
    .reduce<Rule | undefined>(
      (one, other) => (one === undefined || isBefore(other, one) ? other : one),
      undefined,
    );
  return first === undefined || first.isExempt ? null : first.by;
}

/** Whether a directory of this path, which is relative, may make something obeyed that is in it. */
export function isTelling(path: string): boolean {
  const names = namesOf(path.toLowerCase());
  return (find(directories, names) ?? find(ways, names)) !== undefined;
}

const order = new Map(rules.map(({ name }, at) => [name, at]));

function isBefore(one: Rule, other: Rule): boolean {
  return (order.get(one.name) ?? 0) < (order.get(other.name) ?? 0);
}

function namesOf(path: string): string[] {
  return path
    .split("/")
    .filter((name) => name !== "")
    .reverse();
}

/** The directories on the way to what a rule names. One that may be any is none of them. */
function waysTo(rule: Rule): Rule[] {
  return rule.names
    .slice(1)
    .map((_, at) => ({ ...rule, names: rule.names.slice(at + 1) }))
    .filter(({ names }) => names[0] !== "**");
}

function tableOf(all: readonly Rule[]): RuleTable {
  const named = new Map<string, Rule[]>();
  const others: Rule[] = [];
  for (const rule of all) {
    const [last = ""] = rule.names;
    if (last.includes("*")) others.push(rule);
    else named.set(last, [...(named.get(last) ?? []), rule]);
  }
  return { named, others };
}

function find({ named, others }: RuleTable, names: readonly string[]): Rule | undefined {
  const isFitting = (rule: Rule) => fits(rule.names, names);
  const one = named.get(names[0] ?? "")?.find(isFitting);
  const other = others.find(isFitting);
  if (one === undefined || other === undefined) return one ?? other;
  return isBefore(one, other) ? one : other;
}

/** Both from the last name to the first. */
function fits([wanted, ...rest]: readonly string[], names: readonly string[]): boolean {
  if (wanted === undefined) return true;
  if (wanted === "**") return names.some((_, at) => fits(rest, names.slice(at))) || fits(rest, []);
  const [name, ...others] = names;
  return name !== undefined && fitsName(wanted, name) && fits(rest, others);
}

function fitsName(wanted: string, name: string): boolean {
  const star = wanted.indexOf("*");
  if (star < 0) return wanted === name;
  const [start, end] = [wanted.slice(0, star), wanted.slice(star + 1)];
  return name.length >= start.length + end.length && name.startsWith(start) && name.endsWith(end);
}
