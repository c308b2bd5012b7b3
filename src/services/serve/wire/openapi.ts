import { z } from "zod";
import { errorBodySchema } from "./error-body.js";
import { type Route, routes } from "./routes.js";

/** The OpenAPI 3.1 description of the service. */
export function openApiDescription(version: string): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [name, route] of Object.entries<Route>(routes)) {
    const methods = paths[route.path] ?? {};
    methods[route.method.toLowerCase()] = operation(name, route);
    paths[route.path] = methods;
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "brig serve",
      version,
      description: "Sandboxes, and whole episodes of agents, over HTTP.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ token: [] }],
    paths: { ...paths, [PORTS_PATH]: portOperations() },
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: { Error: jsonSchema(errorBodySchema, "output") },
    },
  };
}

/** The path of all requests to ports of sandboxes. The last part may have any number of slashes, or be missing. */
const PORTS_PATH = "/v1/sandboxes/{id}/ports/{port}/{path}";
const PORT_METHODS = ["get", "put", "post", "delete", "options", "head", "patch"];

function portOperations(): Record<string, unknown> {
  const operations = PORT_METHODS.map((method) => [
    method,
    {
      operationId: `${method}Port`,
      summary:
        "Passes the request on to a server in the sandbox, and its answer back as it comes. A request for a WebSocket becomes one",
      parameters: pathParameters(PORTS_PATH),
      responses: {
        default: {
          description:
            "What the server in the sandbox answers. 502 with the code sandbox.port-failed if nothing listens there, or if what does is no server of HTTP",
        },
      },
    },
  ]);
  return Object.fromEntries(operations);
}

const descriptions: Readonly<Record<number, string>> = {
  101: "The connection is a WebSocket from now on.",
  204: "It is done.",
};

function operation(name: string, route: Route): Record<string, unknown> {
  const { summary, isOpen, query, headers, body, answer } = route;
  const description = descriptions[answer.status] ?? "The answer.";
  return {
    operationId: name,
    summary,
    ...(isOpen && { security: [] }),
    parameters: [
      ...pathParameters(route.path),
      ...parametersOf("query", query),
      ...parametersOf("header", headers),
    ],
    ...(body !== undefined && {
      requestBody: {
        required: typeof body !== "string" && !body.safeParse({}).success,
        content: contentOf(body, "input"),
      },
    }),
    responses: {
      [answer.status]: {
        description,
        ...(answer.body !== null && { content: contentOf(answer.body, "output") }),
      },
      default: {
        description: "The request was refused, or failed. 429 and 503 say in Retry-After when to try again.",
        content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
      },
    },
  };
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function parametersOf(place: "query" | "header", schemas: z.ZodObject | undefined): object[] {
  if (schemas === undefined) return [];
  return Object.entries(schemas.shape).map(([name, one]) => {
    const schema = one as z.ZodType;
    return {
      name,
      in: place,
      required: !schema.safeParse(undefined).success,
      schema: jsonSchema(schema, "output"),
    };
  });
}

function contentOf(
  body: NonNullable<Route["answer"]["body"] | Route["body"]>,
  io: "input" | "output",
): Record<string, unknown> {
  if (body === "bytes" || body === "stream") return { "application/octet-stream": { schema: {} } };
  if ("bytes" in body) return { [body.bytes]: { schema: {} } };
  if (body instanceof z.ZodType) return { "application/json": { schema: jsonSchema(body, io) } };
  if ("text" in body) return { [body.text]: { schema: { type: "string" } } };
  return {
    "application/x-ndjson": {
      schema: { ...jsonSchema(body.line, io), description: "One line of the answer" },
    },
  };
}

function jsonSchema(schema: z.ZodType, io: "input" | "output"): Record<string, unknown> {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io });
  return rest;
}
