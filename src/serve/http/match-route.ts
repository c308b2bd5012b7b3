import { type Route, type RouteName, routes } from "../wire/routes.js";
import { Refusal } from "./refusal.js";

export interface MatchedRoute {
  name: RouteName;
  route: Route;
  id: string;
}

/** A part that is `{id}` matches these; no id that is ever given out has others. */
const ID = /^[A-Za-z0-9_-]{1,64}$/;

const table = Object.entries<Route>(routes).map(([name, route]) => ({
  name: name as RouteName,
  route,
  parts: route.path.split("/"),
}));

/** Errors: refusals with 404 and 405. */
export function matchRoute(method: string, path: string): MatchedRoute {
  const others: string[] = [];
  const parts = path.split("/");
  for (const { name, route, parts: wanted } of table) {
    const id = idIn(parts, wanted);
    if (id === null) continue;
    if (route.method === method) return { name, route, id };
    others.push(route.method);
  }
  const hint = "GET /openapi.json describes all requests";
  if (others.length === 0)
    throw new Refusal("there is nothing at this path", { status: 404, code: "serve.unknown", hint });
  const allow = others.join(", ");
  throw new Refusal(`this path takes only ${allow}`, {
    status: 405,
    code: "usage.invalid",
    hint,
    headers: { allow },
  });
}

/** Null if the path is not of this route; empty if the route has no id. */
function idIn(parts: readonly string[], wanted: readonly string[]): string | null {
  if (parts.length !== wanted.length) return null;
  let id = "";
  for (const [index, part] of parts.entries()) {
    if (wanted[index] === "{id}") {
      if (!ID.test(part)) return null;
      id = part;
    } else if (wanted[index] !== part) return null;
  }
  return id;
}
