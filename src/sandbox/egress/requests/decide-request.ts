import type { RequestRule, SourcedRule } from "../../policy/egress/egress-schema.js";
import { matchesPattern } from "./match-pattern.js";
import type { ReadRequest } from "./read-request.js";

/** The first rule of each source that allows the request; null if one of the sources has none. */
export function allowingRules(rules: readonly SourcedRule[], request: ReadRequest): RequestRule[] | null {
  const sources = [...new Set(rules.map(({ source = 0 }) => source))];
  const allowing = sources.flatMap((one) => {
    const rule = allowingRule(
      rules.filter(({ source = 0 }) => source === one),
      request,
    );
    return rule === null ? [] : [rule];
  });
  return allowing.length === sources.length ? allowing : null;
}

/** The rule has to allow the request in each way in which it may be read. */
function allowingRule(
  rules: readonly RequestRule[],
  { method, paths, queries }: ReadRequest,
): RequestRule | null {
  const allows = (rule: RequestRule) =>
    (rule.methods === undefined || rule.methods.includes(method)) &&
    paths.every((path) => rule.path === undefined || matchesPattern(rule.path, path)) &&
    queries.every((query) => rule.query === undefined || hasOnly(rule.query, query));
  return rules.find(allows) ?? null;
}

/** A parameter that is there twice is refused, since programs differ in which one they take. */
function hasOnly(allowed: Readonly<Record<string, string>>, query: ReadRequest["queries"][number]): boolean {
  const names = new Set(query.map(({ name }) => name));
  if (names.size !== query.length) return false;
  return query.every(({ name, value }) => {
    const pattern = Object.hasOwn(allowed, name) ? allowed[name] : undefined;
    // A slash is nothing special in a value.
    return pattern !== undefined && matchesPattern(pattern.replaceAll(/\*+/g, "**"), value);
  });
}

/** A rule in one line, for messages and records: `GET,HEAD api.github.com /repos/acme/**`. */
export function describeRule({ host, methods, path, query }: RequestRule): string {
  const parameters = Object.entries(query ?? {}).map(([name, value]) => `${name}=${value}`);
  const shownQuery = query === undefined ? "" : `?${parameters.join("&")}`;
  return `${methods?.join(",") ?? "any method"} ${host} ${path ?? "any path"}${shownQuery}`;
}
