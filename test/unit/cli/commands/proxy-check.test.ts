import { expect, it } from "vitest";
import { checkProxies } from "../../../../src/cli/commands/proxy-check.js";

it.each<[string, Parameters<typeof checkProxies>[0], object]>([
  [
    "none",
    { variables: {}, egressProxy: undefined },
    {
      status: "ok",
      found: "for the model, login and MCP: none; for allow-lists of sandboxes: none",
      advice: null,
    },
  ],
  [
    "the proxies of the environment without their passwords, and that sandboxes do not use them",
    {
      variables: { HTTPS_PROXY: "http://me:secret@p.test:3128", no_proxy: "corp.test" },
      egressProxy: undefined,
    },
    {
      status: "ok",
      found:
        "for the model, login and MCP: https through http://p.test:3128 with a user (HTTPS_PROXY), http directly; " +
        "not for corp.test (NO_PROXY); for allow-lists of sandboxes: none",
      advice: expect.stringContaining("BRIG_EGRESS_PROXY=environment"),
    },
  ],
  [
    "the proxy of sandboxes",
    { variables: {}, egressProxy: "http://me:secret@q.test" },
    {
      status: "ok",
      found: expect.stringMatching(/allow-lists of sandboxes: http:\/\/q.test:80$/),
      advice: null,
    },
  ],
  [
    "a variable that is no proxy",
    { variables: { https_proxy: "ftp://me:secret@p.test" }, egressProxy: "environment" },
    {
      status: "warn",
      found: expect.not.stringContaining("secret"),
      advice: expect.stringContaining("https_proxy"),
    },
  ],
])("the diagnosis shows %s", (_, environment, expected) => {
  expect(checkProxies(environment)).toMatchObject({ id: "proxies", ...expected });
});
