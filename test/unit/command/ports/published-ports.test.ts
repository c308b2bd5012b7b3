import { expect, it } from "vitest";
import { publishedPort } from "../../../../src/command/ports/published-ports.js";

it.for([
  ["3000", { hostPort: 3000, sandboxPort: 3000 }],
  ["8080:3000", { hostPort: 8080, sandboxPort: 3000 }],
  ["0:3000", { hostPort: 0, sandboxPort: 3000 }],
] as const)("--publish %s is understood", ([text, ports]) => {
  expect(publishedPort(text)).toEqual(ports);
});

it.for(["", "0", "3000:", ":3000", "65536", "1:65536", "65536:1", "0.0.0.0:80:80", "-1", "80/udp", "8o"])(
  "--publish %j is refused",
  (text) => {
    expect(() => publishedPort(text)).toThrow("It must be a port");
  },
);
